#include "cases/spec/select.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"

namespace assay {

namespace {

bool is_glob(std::string_view text) { return text.find_first_of("*?") != std::string_view::npos; }

std::vector<std::string> sorted(const std::set<std::string>& names) { return {names.begin(), names.end()}; }

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

// What a selector term can name, in this build and corpus.
struct Names {
  std::set<std::string> models, aspects{std::begin(kAspects), std::end(kAspects)}, ops, tiers, configs, ids;
};

std::vector<std::string> ops_of(const Corpus& corpus, const Case& test_case) {
  if (test_case.is_op_case()) return {test_case.aspect};
  return model_spec(test_case.model).ops(corpus.config_of(test_case));
}

// Whether the broken case may run an op that `is_wanted`: what is not known of it counts for it.
bool may_run(const Corpus& corpus, const BrokenCase& broken, auto&& is_wanted) {
  if (broken.model == kOpModel) return is_wanted(broken.aspect);
  std::vector<std::string> ops;
  for (const auto& [id, config] : corpus.configs)
    if (config.model == broken.model)
      for (const std::string& op : model_spec(config.model).ops(config)) ops.push_back(op);
  return ops.empty() || std::any_of(ops.begin(), ops.end(), is_wanted);
}

Names names_in(const Corpus& corpus) {
  Names names;
  for (const ModelSpec& spec : model_specs()) names.models.emplace(spec.name);
  for (const auto& [id, config] : corpus.configs) {
    names.configs.insert(config.name);
    names.configs.insert(id);
    for (const std::string& op : model_spec(config.model).ops(config)) names.ops.insert(op);
  }
  names.tiers = {"smoke", "ci", "slow"};
  for (const Case& test_case : corpus.cases) names.ids.insert(test_case.id);
  for (const Case& test_case : corpus.op_cases) {
    names.models.insert(test_case.model);
    names.aspects.insert(test_case.aspect);
    names.ops.insert(test_case.aspect);
    names.ids.insert(test_case.id);
  }
  for (const BrokenCase& broken : corpus.broken) {
    names.ids.insert(broken.id);
    if (broken.model == kOpModel) names.models.insert(broken.model);
    if (!broken.config.empty()) names.configs.insert({broken.config, broken.model + "/" + broken.config});
  }
  return names;
}

// A name must be known; a glob must match a known one. shown: what to list when nothing is close.
void require_known(const std::string& selector, const std::string& what, const std::string& pattern,
                   const std::set<std::string>& known, const std::string& shown = "") {
  const bool is_known =
      std::any_of(known.begin(), known.end(), [&](const std::string& name) { return glob_matches(pattern, name); });
  if (is_known) return;
  const bool is_close = !nearest(pattern, sorted(known)).empty();
  throw InputError("selector '" + selector + "'", "no " + what + " '" + pattern + "'",
                   is_close || shown.empty() ? "nearest: " + nearest_list(pattern, sorted(known)) : shown);
}

constexpr size_t kMostBytes = 1 << 20;

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  const std::string where = "selector '@" + file.string() + "'";
  constexpr const char* kAdvice = "after @ stands the path of a text file with one selector a line";
  std::string whole;
  try {
    whole = read_file(file, kMostBytes);
  } catch (const InputError& error) {
    throw InputError(where, error.problem(), kAdvice);
  }
  std::vector<std::string> lines;
  std::istringstream text(whole);
  for (std::string line; std::getline(text, line);) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    lines.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  if (lines.empty()) throw InputError(where, "holds no selector", kAdvice);
  return lines;
}

// Stands for an aspect or a variant that no file has: only a wildcard matches it.
constexpr const char* kAnyCase = "/\x01.\x01";

class Selection {
 public:
  explicit Selection(const Corpus& corpus) : corpus_(corpus), names_(names_in(corpus)) {}

  void add(const std::string& selector, int depth = 0) {
    if (selector.empty()) throw InputError("selector ''", "is empty", "say a model, a case id, or '*' for everything");
    if (selector[0] == '@') {
      if (depth > 4) throw InputError("selector '" + selector + "'", "files name each other");
      for (const std::string& line : lines_of(selector.substr(1))) add(line, depth + 1);
      return;
    }
    bool has_matched = false;
    const auto take = [&](auto&& is_wanted, auto&& is_wanted_broken) {
      for (const std::vector<Case>* cases : {&corpus_.cases, &corpus_.op_cases})
        for (const Case& test_case : *cases)
          if (is_wanted(test_case)) {
            has_matched = true;
            chosen_.insert(&test_case);
          }
      for (const BrokenCase& broken : corpus_.broken)
        if (is_wanted_broken(broken)) {
          has_matched = true;
          broken_.insert(&broken);
        }
    };
    const auto take_alike = [&](auto&& is_wanted) { take(is_wanted, is_wanted); };
    if (const size_t colon = selector.find(':'); colon != std::string::npos) {
      add_term(selector, selector.substr(0, colon), selector.substr(colon + 1), take);
    } else if (names_.models.count(selector)) {
      whole_.insert(selector);
      take_alike([&](const auto& test_case) { return test_case.model == selector; });
    } else if (is_glob(selector)) {
      if (const size_t slash = selector.find('/'); slash != std::string::npos)
        require_known(selector, "model", selector.substr(0, slash), names_.models);
      for (const std::string& model : names_.models)
        if (glob_matches(selector, model + kAnyCase)) whole_.insert(model);
      take_alike([&](const auto& test_case) { return glob_matches(selector, test_case.id); });
    } else {
      std::set<std::string> known = names_.ids;
      known.insert(names_.models.begin(), names_.models.end());
      require_known(selector, selector.find('/') == std::string::npos ? "model or case" : "case", selector, known,
                    "models: " + joined(names_.models) +
                        "; or a case id (`assay list`), a glob over ids, model: aspect: op: tier: config:, @file");
      take_alike([&](const auto& test_case) { return test_case.id == selector; });
    }
    if (!has_matched) throw InputError("selector '" + selector + "'", "matches no case", advice_for(selector));
  }

  Selected selected() const {
    Selected result;
    for (const std::vector<Case>* cases : {&corpus_.cases, &corpus_.op_cases})
      for (const Case& test_case : *cases)
        if (chosen_.count(&test_case)) result.cases.push_back(&test_case);
    for (const BrokenCase& broken : corpus_.broken)
      if (broken_.count(&broken)) result.broken.push_back(&broken);
    return result;
  }

  const std::set<std::string>& whole() const { return whole_; }

 private:
  template <class Take>
  void add_term(const std::string& selector, const std::string& term, const std::string& value, Take&& take) {
    if (value.empty()) throw InputError("selector '" + selector + "'", "names nothing after '" + term + ":'");
    if (term == "model") {
      require_known(selector, "model", value, names_.models);
      for (const std::string& model : names_.models)
        if (glob_matches(value, model)) whole_.insert(model);
      take([&](const Case& test_case) { return glob_matches(value, test_case.model); },
           [&](const BrokenCase& broken) { return glob_matches(value, broken.model); });
    } else if (term == "aspect") {
      require_known(selector, "aspect", value, names_.aspects);
      take([&](const Case& test_case) { return glob_matches(value, test_case.aspect); },
           [&](const BrokenCase& broken) { return !broken.aspect.empty() && glob_matches(value, broken.aspect); });
    } else if (term == "tier") {
      require_known(selector, "tier", value, names_.tiers);
      take([&](const Case& test_case) { return glob_matches(value, test_case.tier); },
           [&](const BrokenCase& broken) {
             return !broken.aspect.empty() && (broken.tier.empty() || glob_matches(value, broken.tier));
           });
    } else if (term == "config") {
      require_known(selector, "config", value, names_.configs);
      const auto is_named = [&](const std::string& model, const std::string& config) {
        return model != kOpModel && (glob_matches(value, config) || glob_matches(value, model + "/" + config));
      };
      take([&](const Case& test_case) { return is_named(test_case.model, test_case.config); },
           [&](const BrokenCase& broken) {
             return is_named(broken.model, broken.config) || (broken.config.empty() && broken.model != kOpModel);
           });
    } else if (term == "op") {
      require_known(selector, "op", value, names_.ops);
      const auto is_named = [&](const std::string& op) { return glob_matches(value, op); };
      take(
          [&](const Case& test_case) {
            const std::vector<std::string> ops = ops_of(corpus_, test_case);
            return std::any_of(ops.begin(), ops.end(), is_named);
          },
          [&](const BrokenCase& broken) { return may_run(corpus_, broken, is_named); });
    } else {
      throw InputError("selector '" + selector + "'", "no term '" + term + ":'",
                       "terms: model: aspect: op: tier: config:; nearest: " +
                           nearest_list(term, {"model", "aspect", "op", "tier", "config"}));
    }
  }

  // The nearest of the ids and of what globs are made of ("mamba2/cache.*"), first of all.
  std::string advice_for(const std::string& selector) const {
    std::set<std::string> known = names_.ids;
    for (const std::string& id : names_.ids) known.insert(id.substr(0, id.find('.')) + ".*");
    const bool is_close = !nearest(selector, sorted(known)).empty();
    return (is_close ? "nearest: " + nearest_list(selector, sorted(known)) + "; " : "") +
           "`assay list` shows what there is";
  }

  const Corpus& corpus_;
  Names names_;
  std::set<const Case*> chosen_;
  std::set<const BrokenCase*> broken_;
  std::set<std::string> whole_;  // models of which every case is meant
};

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<std::string> whole_models(const Corpus& corpus, const std::vector<std::string>& selectors) {
  Selection selection(corpus);
  for (const std::string& selector : selectors) selection.add(selector);
  std::vector<std::string> models;
  for (const ModelSpec& spec : model_specs())
    if (selection.whole().count(std::string(spec.name))) models.emplace_back(spec.name);
  return models;
}

Selected select_all(const Corpus& corpus, const std::vector<std::string>& selectors) {
  if (selectors.empty())
    throw InputError("selection", "no selector was given", "say a model, a case id, or '*' for everything");
  Selection selection(corpus);
  for (const std::string& selector : selectors) selection.add(selector);
  return selection.selected();
}

std::vector<const Case*> select_cases(const Corpus& corpus, const std::vector<std::string>& selectors) {
  Selected selected = select_all(corpus, selectors);
  if (!selected.broken.empty()) selected.broken.front()->refuse();
  return std::move(selected.cases);
}

}  // namespace assay

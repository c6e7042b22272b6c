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

constexpr uintmax_t kMostBytes = 1 << 20;

// Only a regular file: reading a device or a pipe might never end.
std::vector<std::string> lines_of(const std::filesystem::path& file) {
  const std::string where = "selector '@" + file.string() + "'";
  constexpr const char* kAdvice = "after @ stands the path of a text file with one selector a line";
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) throw InputError(where, "there is no file '" + file.string() + "'", kAdvice);
  if (!std::filesystem::is_regular_file(status))
    throw InputError(where, "'" + file.string() + "' is not a regular file", kAdvice);
  if (const uintmax_t bytes = std::filesystem::file_size(file, error); !error && bytes > kMostBytes)
    throw InputError(where, "'" + file.string() + "' has " + std::to_string(bytes) + " bytes, more than 1 MiB",
                     kAdvice);
  std::vector<std::string> lines;
  std::istringstream text(read_file(file));
  for (std::string line; std::getline(text, line);) {
    line = line.substr(0, line.find('#'));
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos) continue;
    lines.push_back(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
  }
  if (lines.empty()) throw InputError(where, "'" + file.string() + "' holds no selector", kAdvice);
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
    const size_t before = chosen_.size();
    bool has_matched = false;
    const auto take = [&](auto&& is_wanted) {
      for (const std::vector<Case>* cases : {&corpus_.cases, &corpus_.op_cases})
        for (const Case& test_case : *cases)
          if (is_wanted(test_case)) {
            has_matched = true;
            chosen_.insert(&test_case);
          }
    };
    if (const size_t colon = selector.find(':'); colon != std::string::npos) {
      add_term(selector, selector.substr(0, colon), selector.substr(colon + 1), take);
    } else if (names_.models.count(selector)) {
      whole_.insert(selector);
      take([&](const Case& test_case) { return test_case.model == selector; });
    } else if (is_glob(selector)) {
      if (const size_t slash = selector.find('/'); slash != std::string::npos)
        require_known(selector, "model", selector.substr(0, slash), names_.models);
      for (const std::string& model : names_.models)
        if (glob_matches(selector, model + kAnyCase)) whole_.insert(model);
      take([&](const Case& test_case) { return glob_matches(selector, test_case.id); });
    } else {
      std::set<std::string> known = names_.ids;
      known.insert(names_.models.begin(), names_.models.end());
      require_known(selector, selector.find('/') == std::string::npos ? "model or case" : "case", selector, known,
                    "models: " + joined(names_.models) +
                        "; or a case id (`assay list`), a glob over ids, model: aspect: op: tier: config:, @file");
      take([&](const Case& test_case) { return test_case.id == selector; });
    }
    if (!has_matched && chosen_.size() == before)
      throw InputError("selector '" + selector + "'", "matches no case", "`assay list` shows what there is");
  }

  std::vector<const Case*> cases() const {
    std::vector<const Case*> result;
    for (const std::vector<Case>* cases : {&corpus_.cases, &corpus_.op_cases})
      for (const Case& test_case : *cases)
        if (chosen_.count(&test_case)) result.push_back(&test_case);
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
      take([&](const Case& test_case) { return glob_matches(value, test_case.model); });
    } else if (term == "aspect") {
      require_known(selector, "aspect", value, names_.aspects);
      take([&](const Case& test_case) { return glob_matches(value, test_case.aspect); });
    } else if (term == "tier") {
      require_known(selector, "tier", value, names_.tiers);
      take([&](const Case& test_case) { return glob_matches(value, test_case.tier); });
    } else if (term == "config") {
      require_known(selector, "config", value, names_.configs);
      take([&](const Case& test_case) {
        if (test_case.is_op_case()) return false;
        return glob_matches(value, test_case.config) || glob_matches(value, test_case.model + "/" + test_case.config);
      });
    } else if (term == "op") {
      require_known(selector, "op", value, names_.ops);
      take([&](const Case& test_case) {
        const std::vector<std::string> ops = ops_of(corpus_, test_case);
        return std::any_of(ops.begin(), ops.end(), [&](const std::string& op) { return glob_matches(value, op); });
      });
    } else {
      throw InputError("selector '" + selector + "'", "no term '" + term + ":'",
                       "terms: model: aspect: op: tier: config:; nearest: " +
                           nearest_list(term, {"model", "aspect", "op", "tier", "config"}));
    }
  }

  const Corpus& corpus_;
  Names names_;
  std::set<const Case*> chosen_;
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

std::vector<const Case*> select_cases(const Corpus& corpus, const std::vector<std::string>& selectors) {
  if (selectors.empty())
    throw InputError("selection", "no selector was given", "say a model, a case id, or '*' for everything");
  Selection selection(corpus);
  for (const std::string& selector : selectors) selection.add(selector);
  return selection.cases();
}

}  // namespace assay

// assay list: what there is. Opens no subject unless asked for subjects.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/op_spec.hpp"
#include "cases/spec/select.hpp"
#include "golden/life.hpp"
#include "runners/commands/commands.hpp"
#include "runners/coverage.hpp"
#include "runners/execute.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

struct Options {
  std::vector<std::string> selectors;
  std::vector<std::string> of_subjects;  // --subject
  bool models = false, aspects = false, ops = false, subjects = false, coverage = false;
};

// Broken cases stand after the others, and are no success.
int list_broken(const std::vector<const BrokenCase*>& broken, size_t width = 0) {
  for (const BrokenCase* one : broken) width = std::max(width, one->id.size());
  for (const BrokenCase* one : broken)
    fmt::print("{:{}}  BROKEN  {}: {}{}\n", one->id, width, one->where, one->problem,
               one->advice.empty() ? "" : "; " + one->advice);
  return broken.empty() ? kExitAllowed : kExitUsage;
}

int list_broken(const Corpus& corpus) {
  std::vector<const BrokenCase*> all;
  for (const BrokenCase& one : corpus.broken) all.push_back(&one);
  return list_broken(all);
}

int list_cases(const Selected& selected) {
  size_t width = 0;
  for (const Case* test_case : selected.cases) width = std::max(width, test_case->id.size());
  for (const Case* test_case : selected.cases)
    fmt::print("{:{}}  {:5}  {:8}  {}\n", test_case->id, width, test_case->tier, test_case->config, test_case->why);
  return list_broken(selected.broken, width);
}

void list_models(const Corpus& corpus) {
  for (const ModelSpec& spec : model_specs()) {
    std::string configs;
    for (const auto& [id, config] : corpus.configs)
      if (config.model == spec.name) configs += (configs.empty() ? "" : ", ") + config.name;
    const auto cases = std::count_if(corpus.cases.begin(), corpus.cases.end(),
                                     [&](const Case& test_case) { return test_case.model == spec.name; });
    fmt::print("{:16} {:3} cases  configs: {:20}  original: {}\n", spec.name, cases, configs, spec.original_class);
  }
}

void list_aspects(const Corpus& corpus) {
  for (const char* aspect : kAspects) {
    const auto cases = std::count_if(corpus.cases.begin(), corpus.cases.end(),
                                     [&](const Case& test_case) { return test_case.aspect == aspect; });
    fmt::print("{:14} {:3} cases\n", aspect, cases);
  }
}

void list_ops(const Corpus& corpus) {
  std::map<std::string, std::set<std::string>> models;
  for (const auto& [id, config] : corpus.configs)
    for (const std::string& op : model_spec(config.model).ops(config)) models[op].insert(config.model);
  for (const OpSpec& spec : op_specs()) models.try_emplace(spec.name);
  for (const auto& [op, users] : models) {
    const auto cases = std::count_if(corpus.op_cases.begin(), corpus.op_cases.end(),
                                     [&op = op](const Case& test_case) { return test_case.aspect == op; });
    fmt::print("{:20} {:3} op cases  {}\n", op, cases, fmt::join(users, " "));
  }
}

void list_subjects(const Invocation& invocation) {
  for (const char* name : kBuiltInSubjects) {
    const SubjectPlace place = find_subject(name, invocation.executable);
    const OpenedSubject opened = open_subject(place);
    if (opened.unavailable) {
      fmt::print("{:12} not here: {}\n", name, opened.unavailable->text);
      continue;
    }
    const Capabilities& can = opened.subject->capabilities();
    fmt::print("{:12} on {}  ({})  models: {}\n", can.name, can.device, fmt::join(can.versions, ", "),
               fmt::join(can.models, " "));
    for (const auto& [op, forms] : can.forms) fmt::print("{:12}   {}: {}\n", "", op, fmt::join(forms, ", "));
  }
}

// Cases that the subject would not skip for what it lacks.
bool can_run(const Case& test_case, const Capabilities& capabilities) {
  try {
    check_capabilities(test_case, capabilities);
    return true;
  } catch (const NoVerdict&) {
    return false;
  }
}

Coverage coverage_of(const std::vector<const Case*>& cases, const Capabilities* capabilities) {
  Coverage coverage;
  for (const Case* test_case : cases) {
    if (test_case->is_op_case()) continue;  // ops are no rows of models x aspects
    CoverageCell& cell = coverage[test_case->model][test_case->aspect];
    ++cell.cases;
    if (!capabilities || can_run(*test_case, *capabilities)) ++cell.runnable;
  }
  return coverage;
}

// The models of the selected cases, and those that are meant as a whole though they may have no case.
std::vector<std::string> models_shown(const std::vector<const Case*>& cases, const std::vector<std::string>& whole) {
  std::set<std::string> wanted(whole.begin(), whole.end());
  for (const Case* test_case : cases) wanted.insert(test_case->model);
  std::vector<std::string> models;
  for (const std::string& model : all_models())
    if (wanted.contains(model)) models.push_back(model);
  return models;
}

int list_coverage(const Corpus& corpus, const std::vector<std::string>& selectors, const Options& options,
                  const Invocation& invocation) {
  const std::vector<const Case*> cases = select_cases(corpus, selectors);
  const std::vector<std::string> whole = whole_models(corpus, selectors), models = models_shown(cases, whole);
  if (options.of_subjects.empty()) fmt::print("{}", coverage_table(models, coverage_of(cases, nullptr)));
  for (const std::string& name : options.of_subjects) {
    const OpenedSubject opened = open_subject(find_subject(name, invocation.executable));
    if (opened.unavailable) throw InputError("--subject", opened.unavailable->text, "`assay doctor` says what is here");
    const Capabilities& can = opened.subject->capabilities();
    fmt::print("{} on {}\n{}", can.name, can.device, coverage_table(models, coverage_of(cases, &can)));
  }
  const std::vector<std::string> missing = missing_cells(corpus, whole);
  for (const std::string& cell : missing) fmt::print("missing  {}  no case asks this aspect\n", cell);
  return missing.empty() ? kExitAllowed : kExitVerdict;
}

int list(const Options& options, const Invocation& invocation) {
  if (options.subjects) {
    list_subjects(invocation);
    return kExitAllowed;
  }
  const Corpus corpus = read_corpus(invocation.root());
  if (options.models) {
    list_models(corpus);
  } else if (options.aspects) {
    list_aspects(corpus);
  } else if (options.ops) {
    list_ops(corpus);
  } else {
    const std::vector<std::string> all = {"*"};
    const std::vector<std::string>& selectors = options.selectors.empty() ? all : options.selectors;
    if (options.coverage) return list_coverage(corpus, selectors, options, invocation);
    return list_cases(select_all(corpus, selectors));
  }
  return list_broken(corpus);
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(app, "list", "What there is: cases, models, aspects, ops, subjects",
                                  "  assay list                     every case, with the fault it exposes\n"
                                  "  assay list 'mamba2/cache.*'    some cases\n"
                                  "  assay list --coverage          models x aspects; exit 1 where a cell has no case\n"
                                  "  assay list --subjects          what can be tested on this machine\n");
  command->add_option("selector", options->selectors, "Which cases (default: all)")->type_name("SELECTOR");
  auto* group = command->add_option_group("what");
  group->add_flag("--models", options->models, "Models with their configs and number of cases");
  group->add_flag("--aspects", options->aspects, "The fourteen aspects with their number of cases");
  group->add_flag("--ops", options->ops, "Ops with their number of op cases and the models that use them");
  group->add_flag("--subjects", options->subjects, "Subjects, their devices and forms");
  CLI::Option* coverage = group->add_flag("--coverage", options->coverage, "Cases for each model and aspect");
  group->require_option(0, 1);
  command
      ->add_option("--subject", options->of_subjects,
                   "With --coverage: a table for this subject, \"5/7\" where it can run 5 of 7 cases (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->needs(coverage);
  command->callback(
      [options, &invocation] { invocation.action = [options, &invocation] { return list(*options, invocation); }; });
}

}  // namespace assay

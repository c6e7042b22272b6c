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
#include "runners/subjects.hpp"

namespace assay {

namespace {

struct Options {
  std::vector<std::string> selectors;
  bool models = false, aspects = false, ops = false, subjects = false, coverage = false;
};

void list_cases(const std::vector<const Case*>& cases) {
  size_t width = 0;
  for (const Case* test_case : cases) width = std::max(width, test_case->id.size());
  for (const Case* test_case : cases)
    fmt::print("{:{}}  {:5}  {:8}  {}\n", test_case->id, width, test_case->tier, test_case->config, test_case->why);
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

// One row a model, one column an aspect; the number of cases, or a dot where there is none.
void list_coverage(const std::vector<const Case*>& cases) {
  std::map<std::string, std::map<std::string, int>> table;
  std::set<std::string> present;
  for (const Case* test_case : cases) {
    if (test_case->is_op_case()) continue;  // ops are no rows of models x aspects
    ++table[test_case->model][test_case->aspect];
    present.insert(test_case->aspect);
  }
  fmt::print("{:16}", "");
  for (const char* aspect : kAspects) fmt::print(" {:>12}", aspect);
  fmt::print("\n");
  for (const auto& [model, counts] : table) {
    fmt::print("{:16}", model);
    for (const char* aspect : kAspects) {
      const auto found = counts.find(aspect);
      fmt::print(" {:>12}", found == counts.end() ? "." : std::to_string(found->second));
    }
    fmt::print("\n");
  }
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
    const auto cases = select_cases(corpus, options.selectors.empty() ? all : options.selectors);
    options.coverage ? list_coverage(cases) : list_cases(cases);
  }
  return kExitAllowed;
}

}  // namespace

void add_list(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(app, "list", "What there is: cases, models, aspects, ops, subjects",
                                  "  assay list                     every case, with the fault it exposes\n"
                                  "  assay list 'mamba2/cache.*'    some cases\n"
                                  "  assay list --coverage          models x aspects\n"
                                  "  assay list --subjects          what can be tested on this machine\n");
  command->add_option("selector", options->selectors, "Which cases (default: all)")->type_name("SELECTOR");
  auto* group = command->add_option_group("what");
  group->add_flag("--models", options->models, "Models with their configs and number of cases");
  group->add_flag("--aspects", options->aspects, "The fourteen aspects with their number of cases");
  group->add_flag("--ops", options->ops, "Ops with their number of op cases and the models that use them");
  group->add_flag("--subjects", options->subjects, "Subjects, their devices and forms");
  group->add_flag("--coverage", options->coverage, "Cases for each model and aspect");
  group->require_option(0, 1);
  command->callback(
      [options, &invocation] { invocation.action = [options, &invocation] { return list(*options, invocation); }; });
}

}  // namespace assay

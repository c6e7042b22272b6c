// assay new: a case file to fill in. The file does not pass its schema until `why` is written, so an unfinished case
// cannot run by accident; until then it stops what selects it, and nothing else.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"
#include "runners/commands/case_templates.hpp"
#include "runners/commands/commands.hpp"

namespace assay {

namespace {

// "tiny" where there is one, else the first.
ModelConfig usual_config(const std::filesystem::path& folder, const std::string& model) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().ends_with(".config.json")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty())
    throw InputError(folder.string(), "there is no config of " + model + " that a case could ask about",
                     "write one first: cases/README.md, \"Config fields\"");
  const auto tiny =
      std::find_if(files.begin(), files.end(), [](const auto& file) { return file.filename() == "tiny.config.json"; });
  return read_config(tiny == files.end() ? files.front() : *tiny);
}

int new_case(const std::string& model, const std::string& name, const Invocation& invocation) {
  model_spec(model);
  const size_t dot = name.find('.');
  const std::string aspect = name.substr(0, dot);
  if (dot == std::string::npos || dot + 1 == name.size())
    throw InputError("case name", "'" + name + "' is not ASPECT.VARIANT", "for example cache.two_calls");
  for (const char c : name.substr(dot + 1))
    if (!(std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) || c == '_'))
      throw InputError("case name", fmt::format("a variant is lower case letters, digits and '_', not '{}'", c));
  const std::vector<std::string> aspects(std::begin(kAspects), std::end(kAspects));
  if (std::find(aspects.begin(), aspects.end(), aspect) == aspects.end())
    throw InputError("case name", "unknown aspect '" + aspect + "'", "nearest: " + nearest_list(aspect, aspects));
  const std::filesystem::path root = invocation.root();
  const std::filesystem::path folder = root / "cases" / "models" / model;
  const std::filesystem::path file = folder / (name + ".json");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored))
    throw InputError(file.string(), "exists already", "edit it, or choose another variant");
  write_file(file, case_template(aspect, usual_config(folder, model), read_corpus(root)));
  fmt::print(
      "wrote {}\n"
      "next:\n"
      "  1. write `why` (the fault this case exposes) and the legs; cases/README.md tells every field. Until then the\n"
      "     case is broken: `assay list` says so, and a run that selects it ends before it begins\n"
      "  2. assay show {}/{}                 what it will do and which goldens it cites\n"
      "  3. assay golden record {}/{}        if a golden it cites is not recorded yet; then review and accept\n"
      "  4. cmake --build the build folder, so that ctest sees it\n",
      std::filesystem::relative(file, root).string(), model, name, model, name);
  return kExitAllowed;
}

}  // namespace

void add_new(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string model, name;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(app, "new", "A case file to fill in", "  assay new mamba2 cache.two_calls\n");
  command->add_option("model", options->model, "A model (`assay list --models`)")->required()->type_name("MODEL");
  command->add_option("name", options->name, "Aspect and variant")->required()->type_name("ASPECT.VARIANT");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return new_case(options->model, options->name, invocation); };
  });
}

}  // namespace assay

// assay export: a config as a Hugging Face folder.
#include "cases/spec/export.hpp"

#include <fmt/format.h>

#include <memory>

#include "runners/commands/commands.hpp"
#include "runners/commands/config_argument.hpp"

namespace assay {

namespace {

struct Options {
  std::string config, directory, layout = "released";
};

int export_config(const Options& options, const Invocation& invocation) {
  const ModelConfig config = config_argument(options.config, invocation);
  const Layout layout = layout_from_name(options.layout);
  export_model(config, options.directory, layout);
  fmt::print("{}: config.json, model.safetensors ({}) and assay.json in {}\n", config.id(), layout_name(layout),
             options.directory);
  return kExitAllowed;
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(
      app, "export", "Write a config with its weights as a Hugging Face folder",
      "  assay export mamba2/tiny out/mamba2-tiny\n"
      "  python3 -c \"import transformers as t; t.AutoModelForCausalLM.from_pretrained('out/mamba2-tiny')\"\n"
      "  assay export jamba/tiny out/jamba-fused --layout fused\n\n"
      "Layouts, which may be united with commas; \"released\" has none of them:\n" +
          layouts_by_model());
  command->add_option("config", options->config, "MODEL/NAME or a config file")->required()->type_name("CONFIG");
  command->add_option("directory", options->directory, "Folder to write; made if it is not there")
      ->required()
      ->type_name("DIR");
  command->add_option("--layout", options->layout, "The form in which the file holds the tensors (below)")
      ->capture_default_str()
      ->type_name("NAMES");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return export_config(*options, invocation); };
  });
}

}  // namespace assay

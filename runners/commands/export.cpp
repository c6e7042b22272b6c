// assay export: a config as a Hugging Face folder.
#include <fmt/format.h>

#include <memory>

#include "cases/spec/weights.hpp"
#include "runners/commands/commands.hpp"
#include "runners/commands/config_argument.hpp"

namespace assay {

namespace {

int export_config(const std::string& name, const std::string& directory, const Invocation& invocation) {
  const ModelConfig config = config_argument(name, invocation);
  export_model(config, directory);
  fmt::print("{}: config.json, model.safetensors and assay.json in {}\n", config.id(), directory);
  return kExitAllowed;
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string config, directory;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = new_command(
      app, "export", "Write a config with its weights as a Hugging Face folder",
      "  assay export mamba2/tiny out/mamba2-tiny\n"
      "  python3 -c \"import transformers as t; t.AutoModelForCausalLM.from_pretrained('out/mamba2-tiny')\"\n");
  command->add_option("config", options->config, "MODEL/NAME or a config file")->required()->type_name("CONFIG");
  command->add_option("directory", options->directory, "Folder to write; made if it is not there")
      ->required()
      ->type_name("DIR");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] {
      return export_config(options->config, options->directory, invocation);
    };
  });
}

}  // namespace assay

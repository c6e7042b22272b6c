// assay export: a config as a Hugging Face folder.
#include "cases/spec/export.hpp"

#include <fmt/format.h>

#include <memory>

#include "runners/commands/commands.hpp"
#include "runners/commands/config_argument.hpp"

namespace assay {

namespace {

struct Options {
  std::string config, directory, layout = "released", format = "safetensors";
  int64_t shard_bytes = 0;
};

int export_config(const Options& options, const Invocation& invocation) {
  const ModelConfig config = config_argument(options.config, invocation);
  ExportOptions written;
  written.layout = layout_from_name(options.layout);
  written.format = options.format == "bin" ? ExportOptions::Format::kBin : ExportOptions::Format::kSafetensors;
  written.shard_bytes = options.shard_bytes;
  export_model(config, options.directory, written);
  const std::string name = options.format == "bin" ? "pytorch_model.bin" : "model.safetensors";
  fmt::print("{}: config.json, {}{} ({}) and assay.json in {}\n", config.id(), name,
             options.shard_bytes > 0 ? ".index.json with its shards" : "", layout_name(written.layout),
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
      "  assay export jamba/tiny out/jamba-fused --layout fused\n"
      "  assay export jamba/tiny out/jamba-shards --format bin --shard-bytes 200000\n\n"
      "Layouts, which may be united with commas; \"released\" has none of them:\n" +
          layouts_by_model());
  command->add_option("config", options->config, "MODEL/NAME or a config file")->required()->type_name("CONFIG");
  command->add_option("directory", options->directory, "Folder to write; made if it is not there")
      ->required()
      ->type_name("DIR");
  command->add_option("--layout", options->layout, "The form in which the file holds the tensors (below)")
      ->capture_default_str()
      ->type_name("NAMES");
  command->add_option("--format", options->format, "safetensors, or bin: what torch.save writes")
      ->check(CLI::IsMember({"safetensors", "bin"}))
      ->capture_default_str()
      ->type_name("NAME");
  command
      ->add_option("--shard-bytes", options->shard_bytes, "Several files of at most N bytes of weights, and an index")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50))
      ->type_name("N");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return export_config(*options, invocation); };
  });
}

}  // namespace assay

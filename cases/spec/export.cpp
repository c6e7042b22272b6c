#include <filesystem>
#include <system_error>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

void export_model(const ModelConfig& config, const std::filesystem::path& directory) {
  using Json = nlohmann::json;
  const ModelSpec& spec = model_spec(config.model);
  const auto table = spec.weights(config);
  const auto source = open_weights(config);
  check_names(table, *source);

  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) throw HarnessError(directory.string(), "cannot be made: " + failure.message());

  std::vector<NamedTensor> tensors;
  Json weights = Json::object();
  for (const WeightSpec& weight : table) {
    HostTensor tensor = read_weight(weight, *source);
    weights[weight.name] = {{"shape", weight.shape}, {"sha256", sha256(tensor.bytes())}};
    tensors.push_back({weight.name, std::move(tensor)});
  }

  Json fields = config.fields;
  fields["model_type"] = config.model;
  fields["architectures"] = {spec.original_class};
  if (!fields.contains("torch_dtype") && !fields.contains("dtype")) fields["dtype"] = "float32";

  Json inputs = Json::object();
  for (const auto& [name, input] : config.inputs) inputs[name] = {{"tokens", input.tokens}, {"greedy", input.greedy}};
  Json probes = Json::array();
  for (const ProbeSpec& probe : spec.probes(config))
    probes.push_back({{"name", probe.name},
                      {"shape", probe.shape},
                      {"is_state", probe.is_state},
                      {"op", probe.op},
                      {"layer", probe.layer},
                      {"state_heads", probe.state_heads}});
  const Json manifest = {{"schema", "assay.export/1"},
                         {"model", config.model},
                         {"config", config.name},
                         {"original_class", spec.original_class},
                         {"config_digest", config.digest},
                         {"weights", weights},
                         {"inputs", inputs},
                         {"state_cuts", config.state_cuts},
                         {"probes", probes}};

  write_safetensors(directory / "model.safetensors", tensors, {{"format", "pt"}});
  write_file(directory / "config.json", fields.dump(2) + "\n");
  write_file(directory / "assay.json", manifest.dump(2) + "\n");
}

}  // namespace assay

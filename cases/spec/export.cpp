#include "cases/spec/export.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <system_error>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

// Hands out the tensors of a file, put together from the table's, and keeps the digests of the latter.
class Assembled {
 public:
  Assembled(const ModelConfig& config, std::vector<FileTensor> files)
      : table_(model_spec(config.model).weights(config)), source_(open_weights(config)), files_(std::move(files)) {
    check_names(table_, *source_);
  }

  std::vector<TensorHeader> headers() const {
    std::vector<TensorHeader> all;
    for (const FileTensor& file : files_) all.push_back({file.name, DType::kF32, file.shape});
    return all;
  }

  HostTensor next() {
    const FileTensor& file = files_.at(at_++);
    HostTensor tensor(DType::kF32, file.shape);
    const auto values = tensor.values<float>();
    if (file.parts.empty()) std::fill(values.begin(), values.end(), 0.5f);
    auto into = values.begin();
    for (const FileTensor::Part& part : file.parts) {
      const auto from = row(part.row).values<float>().subspan(static_cast<size_t>(part.begin));
      into = std::copy_n(from.begin(), part.count, into);
    }
    return tensor;
  }

  const Json& digests() const { return digests_; }

 private:
  // The parts of a fused tensor, and the tensors cut from one, follow each other: the last row is kept.
  const HostTensor& row(size_t number) {
    if (held_ == number) return last_;
    const WeightSpec& spec = table_[number];
    last_ = HostTensor();  // before the next one is made
    last_ = read_weight(spec, *source_);
    held_ = number;
    if (!digests_.contains(spec.name)) digests_[spec.name] = {{"shape", spec.shape}, {"sha256", sha256(last_.bytes())}};
    return last_;
  }

  std::vector<WeightSpec> table_;
  std::shared_ptr<const WeightSource> source_;
  std::vector<FileTensor> files_;
  size_t at_ = 0;
  std::optional<size_t> held_;
  HostTensor last_;
  Json digests_ = Json::object();
};

Json hugging_face_fields(const ModelConfig& config) {
  Json fields = config.fields;
  if (!fields.contains("model_type")) fields["model_type"] = config.model;
  fields["architectures"] = {model_spec(config.model).original_class};
  if (!fields.contains("torch_dtype") && !fields.contains("dtype")) fields["dtype"] = "float32";
  return fields;
}

Json manifest(const ModelConfig& config, const Json& weights) {
  const ModelSpec& spec = model_spec(config.model);
  Json inputs = Json::object();
  for (const auto& [name, input] : config.inputs) {
    inputs[name] = {{"tokens", input.tokens},
                    {"greedy", input.greedy},
                    {"record", input.is_logits_only ? "logits" : "all"},
                    {"cuts", config.cuts_of(input)}};
    if (input.beams) inputs[name]["beams"] = {{"width", input.beams->width}, {"steps", input.beams->steps}};
  }
  Json probes = Json::array();
  for (const ProbeSpec& probe : spec.probes(config))
    probes.push_back({{"name", probe.name},
                      {"shape", probe.shape},
                      {"is_state", probe.is_state},
                      {"op", probe.op},
                      {"layer", probe.layer},
                      {"state_heads", probe.state_heads},
                      {"follows", probe.follows}});
  return {{"schema", "assay.export/1"},
          {"model", config.model},
          {"config", config.name},
          {"original_class", spec.original_class},
          {"config_digest", config.digest},
          {"weights", weights},
          {"inputs", inputs},
          {"probes", probes}};
}

}  // namespace

void export_model(const ModelConfig& config, const std::filesystem::path& directory, Layout layout) {
  Assembled tensors(config, file_tensors(config, layout));
  std::error_code failure;
  std::filesystem::create_directories(directory, failure);
  if (failure) throw HarnessError(directory.string(), "cannot be made: " + failure.message());

  write_safetensors(directory / "model.safetensors", tensors.headers(),
                    [&](const TensorHeader&) { return tensors.next(); }, {{"format", "pt"}});
  write_file(directory / "config.json", hugging_face_fields(config).dump(2) + "\n");
  write_file(directory / "assay.json", manifest(config, tensors.digests()).dump(2) + "\n");
}

}  // namespace assay

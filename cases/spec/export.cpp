#include "cases/spec/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/torch_bin.hpp"
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

namespace fs = std::filesystem;

struct Form {
  ExportOptions::Format format;
  const char *stem, *extension;
};
// In the order in which open_checkpoint looks for them.
constexpr Form kForms[] = {{ExportOptions::Format::kSafetensors, "model", ".safetensors"},
                           {ExportOptions::Format::kBin, "pytorch_model", ".bin"}};

// The weights must not be read while they are overwritten, and what is written must be what is read afterwards.
void check_folder(const ModelConfig& config, const fs::path& directory, const ExportOptions& options) {
  std::error_code ignored;
  if (config.weights.kind == WeightsRecipe::Kind::kCheckpoint &&
      fs::equivalent(config.weights.directory, directory, ignored))
    throw InputError(directory.string(), "is the folder that the weights are read from", "export into another one");
  for (const Form& form : kForms)
    for (const bool is_sharded : {false, true}) {
      const bool is_ours = form.format == options.format && is_sharded == (options.shard_bytes > 0);
      if (is_ours) return;
      const std::string other = std::string(form.stem) + form.extension + (is_sharded ? ".index.json" : "");
      if (fs::exists(directory / other, ignored))
        throw InputError(directory.string(), "holds " + other + ", which would be read instead of what is written",
                         "remove it, or export into another folder");
    }
}

// Headers to files: all in one, or in order as many as fit.
std::vector<std::vector<TensorHeader>> divided(const std::vector<TensorHeader>& headers, int64_t shard_bytes) {
  std::vector<std::vector<TensorHeader>> shards(1);
  int64_t bytes = 0;
  for (const TensorHeader& header : headers) {
    const int64_t more = element_count(header.shape) * static_cast<int64_t>(size_of(header.dtype));
    if (shard_bytes > 0 && !shards.back().empty() && more > shard_bytes - bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back(header);
    bytes += more;
  }
  return shards;
}

void write_weights(Assembled& tensors, const fs::path& directory, const ExportOptions& options) {
  const Form& form = kForms[options.format == ExportOptions::Format::kBin];
  const auto shards = divided(tensors.headers(), options.shard_bytes);
  Json places = Json::object();
  int64_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string number = options.shard_bytes > 0 ? fmt::format("-{:05}-of-{:05}", i + 1, shards.size()) : "";
    const std::string name = form.stem + number + form.extension;
    const ReadTensor next = [&](const TensorHeader&) { return tensors.next(); };
    if (form.format == ExportOptions::Format::kBin)
      write_torch_bin(directory / name, shards[i], next);
    else
      write_safetensors(directory / name, shards[i], next, {{"format", "pt"}});
    for (const TensorHeader& header : shards[i]) {
      places[header.name] = name;
      total += element_count(header.shape) * static_cast<int64_t>(size_of(header.dtype));
    }
  }
  if (options.shard_bytes > 0)
    write_file(directory / (std::string(form.stem) + form.extension + ".index.json"),
               Json{{"metadata", {{"total_size", total}}}, {"weight_map", places}}.dump(2) + "\n");
}

}  // namespace

void export_model(const ModelConfig& config, const fs::path& directory, const ExportOptions& options) {
  if (options.shard_bytes < 0)
    throw InputError("shard_bytes", fmt::format("must be 0 or more, got {}", options.shard_bytes));
  check_folder(config, directory, options);
  Assembled tensors(config, file_tensors(config, options.layout));
  std::error_code failure;
  fs::create_directories(directory, failure);
  if (failure) throw HarnessError(directory.string(), "cannot be made: " + failure.message());

  write_weights(tensors, directory, options);
  write_file(directory / "config.json", hugging_face_fields(config).dump(2) + "\n");
  write_file(directory / "assay.json", manifest(config, tensors.digests()).dump(2) + "\n");
}

void export_model(const ModelConfig& config, const fs::path& directory, Layout layout) {
  ExportOptions options;
  options.layout = layout;
  export_model(config, directory, options);
}

}  // namespace assay

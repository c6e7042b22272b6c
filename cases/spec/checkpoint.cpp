#include "cases/spec/checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/layouts.hpp"
#include "cases/spec/quantized_source.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/select.hpp"
#include "cases/spec/torch_bin.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace fs = std::filesystem;

namespace {

class SyntheticSource : public WeightSource {
 public:
  SyntheticSource(std::vector<WeightSpec> table, uint64_t seed) : table_(std::move(table)), seed_(seed) {
    for (size_t i = 0; i < table_.size(); ++i) index_[table_[i].name] = i;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const WeightSpec& spec : table_) all.push_back(spec.name);
    return all;
  }
  bool has(const std::string& name) const override { return index_.count(name) > 0; }
  HostTensor read(const std::string& name) const override { return draw(find(name), seed_); }
  TensorHeader header(const std::string& name) const override { return {name, DType::kF32, find(name).shape}; }

 private:
  const WeightSpec& find(const std::string& name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) throw InputError("synthetic weights", "there is no tensor '" + name + "'");
    return table_[found->second];
  }

  std::vector<WeightSpec> table_;
  std::map<std::string, size_t> index_;
  uint64_t seed_;
};

using Open = std::shared_ptr<const WeightSource> (*)(const fs::path&);

// The shards that an index file names, opened together; each tensor comes from the shard that the index says.
class ShardedSource : public WeightSource {
 public:
  ShardedSource(const fs::path& index_file, Open open_shard) : index_file_(index_file) {
    const nlohmann::json index = read_json(index_file);
    if (!index.is_object() || !index.contains("weight_map") || !index.at("weight_map").is_object())
      throw InputError(index_file.string(), "has no weight_map object");
    for (const auto& [name, shard] : index.at("weight_map").items()) {
      const std::string where = index_file.string() + " /weight_map/" + name;
      if (!shard.is_string()) throw InputError(where, "must be the name of a shard");
      const auto file = shard.get<std::string>();
      if (file.find('/') != std::string::npos || file.find("..") != std::string::npos)
        throw InputError(where, "'" + file + "' is not a file of this folder");
      std::error_code ignored;
      if (!std::filesystem::exists(index_file.parent_path() / file, ignored))
        throw InputError(where, "its shard '" + file + "' is not there");
      if (!shards_.count(file)) shards_[file] = open_shard(index_file.parent_path() / file);
      if (!shards_[file]->has(name)) throw InputError(where, "'" + file + "' does not hold this tensor");
      place_[name] = shards_[file];
    }
    // A tensor that the index leaves out would be loaded by the original and silently not by us.
    for (const auto& [file, shard] : shards_)
      for (const std::string& name : shard->names())
        if (!place_.count(name) || place_.at(name) != shard)
          throw InputError(index_file.string(),
                           "does not place tensor '" + name + "' in '" + file + "', which holds it");
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& entry : place_) all.push_back(entry.first);
    return all;
  }
  bool has(const std::string& name) const override { return place_.count(name) > 0; }
  HostTensor read(const std::string& name) const override { return shard_of(name).read(name); }
  TensorHeader header(const std::string& name) const override { return shard_of(name).header(name); }
  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override {
    return shard_of(name).read_elements(name, begin, count);
  }
  std::string where(const std::string& name) const override {
    return has(name) ? shard_of(name).where(name) : WeightSource::where(name);
  }
  std::string place() const override { return index_file_.string(); }

 private:
  const WeightSource& shard_of(const std::string& name) const {
    const auto found = place_.find(name);
    if (found == place_.end()) throw InputError("checkpoint", "the index names no tensor '" + name + "'");
    return *found->second;
  }

  fs::path index_file_;
  std::map<std::string, std::shared_ptr<const WeightSource>> shards_, place_;
};

}  // namespace

std::shared_ptr<const WeightSource> open_checkpoint(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) throw InputError(directory.string(), "is not a folder");
  constexpr std::pair<const char*, Open> kForms[] = {{"model.safetensors", open_safetensors},
                                                     {"pytorch_model.bin", open_torch_bin}};
  for (const auto& [name, open_file] : kForms) {
    if (fs::exists(directory / name, ignored)) return open_file(directory / name);
    const fs::path index_file = directory / (std::string(name) + ".index.json");
    if (fs::exists(index_file, ignored)) return std::make_shared<ShardedSource>(index_file, open_file);
  }
  throw InputError(directory.string(),
                   "has no model.safetensors, no pytorch_model.bin and no .index.json of one of them",
                   "a checkpoint is a folder in Hugging Face layout");
}

std::shared_ptr<const WeightSource> open_weights(const ModelConfig& config) {
  if (config.weights.kind == WeightsRecipe::Kind::kSynthetic)
    return std::make_shared<SyntheticSource>(model_spec(config.model).weights(config), config.weights.seed);
  const std::shared_ptr<const WeightSource> files = open_checkpoint(config.weights.directory);
  check_fields(config, config.weights.directory);
  return canonical_source(config, quantized_source(files));
}

InputError missing_weight(const std::string& name, const WeightSource& source) {
  const std::vector<std::string> present = source.names();
  const std::string place = source.place(), weight = "weight '" + name + "'";
  return {place.empty() ? weight : place + " " + weight, "is missing",
          present.empty() ? "no tensor at all is there" : "nearest there: " + nearest_list(name, present)};
}

void check_names(const std::vector<WeightSpec>& table, const WeightSource& source) {
  std::vector<std::string> wanted;
  for (const WeightSpec& spec : table) wanted.push_back(spec.name);
  const std::set<std::string> wanted_set(wanted.begin(), wanted.end());
  const std::vector<std::string> present = source.names();
  for (const std::string& name : wanted) {
    if (source.has(name)) continue;
    throw missing_weight(name, source);
  }
  for (const std::string& name : present) {
    if (wanted_set.count(name) || name == "lm_head.weight") continue;
    throw InputError("weight '" + name + "'", "is not one of this model's",
                     "nearest expected: " + nearest_list(name, wanted));
  }
}

HostTensor read_weight(const WeightSpec& spec, const WeightSource& source) {
  const HostTensor stored = source.read(spec.name);
  const std::string where = source.where(spec.name);
  if (stored.shape() != spec.shape)
    throw InputError(where, fmt::format("expected shape {}, got {}", to_string(spec.shape), to_string(stored.shape())));
  const bool is_float = stored.dtype() == DType::kF32 || stored.dtype() == DType::kF16 ||
                        stored.dtype() == DType::kBF16 || stored.dtype() == DType::kF64;
  if (!is_float) throw InputError(where, fmt::format("expected a float dtype, got {}", dtype_name(stored.dtype())));
  HostTensor tensor(DType::kF32, stored.shape());
  const auto values = tensor.values<float>();
  for (int64_t i = 0; i < stored.count(); ++i) {
    const auto value = static_cast<float>(stored.at(i));
    if (!std::isfinite(value))  // a float64 beyond float32 too
      throw InputError(where, fmt::format("element {} is {}", to_string(coordinates(i, spec.shape)), stored.at(i)),
                       "a weight must be finite in float32");
    values[static_cast<size_t>(i)] = value;
  }
  return tensor;
}

}  // namespace assay

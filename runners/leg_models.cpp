#include "runners/leg_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/spec/export.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace {

constexpr int64_t kShards = 4;

// Shards of a quarter of the values or so: their ends fall within layers.
ExportOptions export_options(const ModelConfig& config, Leg::From from) {
  ExportOptions options;
  if (from == Leg::From::kBin || from == Leg::From::kShardedBin) options.format = ExportOptions::Format::kBin;
  if (from == Leg::From::kSharded || from == Leg::From::kShardedBin) {
    int64_t elements = 0;
    for (const WeightSpec& spec : model_spec(config.model).weights(config)) elements += element_count(spec.shape);
    options.shard_bytes = std::max<int64_t>(1, elements * static_cast<int64_t>(sizeof(float)) / kShards);
  }
  return options;
}

std::string identity_of(const ModelConfig& config, const LoadOptions& options) {
  std::string text = fmt::format("{} {} {} {}", config.digest, dtype_name(options.compute), dtype_name(options.weights),
                                 options.quantization);
  for (const std::string& name : options.quantized) text += " " + name;
  return text;
}

}  // namespace

std::shared_ptr<const WeightSource> LegModels::weights(const ModelConfig& config, Leg::From from) {
  if (from == Leg::From::kMemory) return open_weights(config);
  const std::string wanted = fmt::format("{} {}", config.digest, static_cast<int>(from));
  if (wanted != exported_ || !folder_) {
    exported_.clear();
    folder_ = std::make_unique<ScratchFolder>();
    try {
      export_model(config, folder_->path(), export_options(config, from));
    } catch (const HarnessError& error) {
      folder_.reset();
      throw ScratchError(error.where(), error.problem(), "free some space, or set TMPDIR to another folder");
    }
    exported_ = wanted;
  }
  ModelConfig checkpoint = config;
  checkpoint.weights.kind = WeightsRecipe::Kind::kCheckpoint;
  checkpoint.weights.directory = folder_->path();
  return open_weights(checkpoint);
}

LegModels::Loaded LegModels::get(const ModelConfig& config, const Leg& leg, LoadOptions options) {
  options.residency = leg.residency;
  const std::string identity = identity_of(config, options);
  const std::string key =
      fmt::format("{} {} {}", identity, static_cast<int>(leg.from), static_cast<int>(leg.residency));
  const bool is_new = key != key_ || !model_;
  if (is_new) {
    drop();  // before the next one is loaded: both may not fit
    const auto source = std::make_shared<const CountedSource>(weights(config, leg.from));
    reads_ = std::make_unique<ReadWatch>(config, source, options);
    model_ = subject_.load(config, source, options);
    identity_ = identity;
    key_ = key;
  }
  return {*model_, *reads_, is_new};
}

void LegModels::drop() {
  model_.reset();
  reads_.reset();
  key_.clear();
}

}  // namespace assay

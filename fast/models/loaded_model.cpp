#include "fast/models/loaded_model.hpp"

#include "cases/spec/error.hpp"
#include "fast/device/device.hpp"
#include "fast/models/session.hpp"

namespace assay::fast {

namespace {

// Large enough that a model's weights take few allocations, small enough that a tiny model wastes little.
constexpr int64_t kWeightSlabBytes = int64_t{16} << 20;

void check_options(const ModelConfig& config, const LoadOptions& options) {
  const std::string where = "load of " + config.id();
  if (options.compute != DType::kF32)
    throw UnsupportedError(where, "computing in " + std::string(dtype_name(options.compute)) + "; float32 only");
  if (options.weights != DType::kF32)
    throw UnsupportedError(where, "weights in " + std::string(dtype_name(options.weights)) + "; float32 only");
  if (!options.quantization.empty()) throw UnsupportedError(where, "quantization '" + options.quantization + "'");
  if (options.residency != Residency::kResident) throw UnsupportedError(where, "offloaded weights; resident only");
}

}  // namespace

LoadedModel::LoadedModel(const ModelConfig& config, const WeightSource& source)
    : id(config.id()),
      weights_arena("weights", context.memory(), kWeightSlabBytes),
      weights(config, source, weights_arena, context.stream()),
      network(make_network(config, weights)) {
  context.memory().count_weight_bytes(weights_arena.requested_bytes());
  weights_arena.check_guards();
}

std::unique_ptr<Session> FastModel::start(const SessionOptions& options) {
  return std::make_unique<FastSession>(model_, options);
}

HostTensor FastModel::weight(const std::string& name) const {
  const Weight& weight = model_->weights.at(name);
  return download(Tensor<float>{static_cast<float*>(weight.data), weight.shape}, name, model_->context.stream());
}

std::unique_ptr<Model> load_model(const ModelConfig& config, const WeightSource& source, const LoadOptions& options) {
  check_options(config, options);
  check_network(config);
  require_device();
  return std::make_unique<FastModel>(std::make_shared<LoadedModel>(config, source));
}

}  // namespace assay::fast

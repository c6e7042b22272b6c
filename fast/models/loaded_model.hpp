// LoadedModel: weights on the device and the network over them. Sessions share it, so a session may outlive the Model
// that started it.
#pragma once

#include <memory>
#include <string>

#include "cases/spec/subject.hpp"
#include "fast/blocks/weights.hpp"
#include "fast/device/arena.hpp"
#include "fast/device/context.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

// Order of the members: arenas give their slabs back before the context that they came from goes.
struct LoadedModel {
  LoadedModel(const ModelConfig& config, const WeightSource& source);

  std::string id;
  Context context;
  Arena weights_arena;
  Weights weights;
  std::unique_ptr<Network> network;
};

class FastModel : public Model {
 public:
  explicit FastModel(std::shared_ptr<LoadedModel> model) : model_(std::move(model)) {}
  std::unique_ptr<Session> start(const SessionOptions& options) override;
  HostTensor weight(const std::string& name) const override;
  MemoryUse memory() const override { return model_->context.memory().use(); }

 private:
  std::shared_ptr<LoadedModel> model_;
};

// UnsupportedError: options or sizes the fast path does not have; then InputError as in blocks/weights.hpp.
std::unique_ptr<Model> load_model(const ModelConfig& config, const WeightSource& source, const LoadOptions& options);

}  // namespace assay::fast

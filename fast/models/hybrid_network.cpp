#include "fast/models/hybrid_network.hpp"

#include <utility>

#include "fast/blocks/residual_stream.hpp"

namespace assay::fast {

namespace {

class HybridNetwork : public Network {
 public:
  explicit HybridNetwork(HybridModel model) : model_(std::move(model)) {}

  int64_t vocabulary() const override { return model_.vocabulary; }

  std::vector<LayerStateShape> state_shapes() const override {
    std::vector<LayerStateShape> states(model_.layers.size());
    for (size_t l = 0; l < states.size(); ++l)
      for (const Addition& addition : model_.layers[l]) add_state(states[l], addition.branch.state);
    return states;
  }

  void forward(Pass& pass) const override {
    const Matrix embedded = embed(pass, model_.ends, model_.embedding_multiplier);
    ResidualStream h(pass, embedded, model_.norm);
    BranchPlace at;
    at.output = pass.buffer(embedded.columns, "block output");
    for (const std::string& label : model_.workspace) at.workspace.push_back(pass.buffer(embedded.columns, label));
    for (size_t l = 0; l < model_.layers.size(); ++l) {
      at.layer = static_cast<int64_t>(l);
      at.probe = "layers." + std::to_string(l) + ".";
      for (const Addition& addition : model_.layers[l]) {
        at.input = h.normed(addition.norm, at.probe + addition.normed_probe);
        addition.branch.run(pass, at);
        if (model_.residual_multiplier)
          h.add_scaled(at.output, *model_.residual_multiplier, at.probe + addition.added_probe);
        else
          h.add(at.output, at.probe + addition.added_probe);
      }
    }
    logits(pass, h.normed(model_.norm_f, "norm_f"), model_.ends, model_.logits_multiplier);
  }

 private:
  HybridModel model_;
};

}  // namespace

std::unique_ptr<Network> make_hybrid_network(HybridModel model) {
  return std::make_unique<HybridNetwork>(std::move(model));
}

}  // namespace assay::fast

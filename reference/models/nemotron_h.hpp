// Nemotron-H (models.md M10): one mixer a layer, h += mixer(rms_norm(h)); then rms_norm and a head of its own.
//
// mixer    Mamba-2, grouped-query attention without positions, feed-forward (squared ReLU), or routed experts and a
//          shared one beside them
// state    a layer: conv and ssm, or key and value, or none (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.* or attn.* or ff.*, out; norm_f; logits
// weights  cases/spec/models/nemotron_h.cpp
#pragma once

#include "cases/spec/models/nemotron_h.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class NemotronH final : public Network {
 public:
  explicit NemotronH(const ModelConfig& config) : fields_(nemotron_h_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  NemotronHFields fields_;
};

}  // namespace assay::reference

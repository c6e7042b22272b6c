// GraniteMoeHybrid (models.md M6): Mamba-2 layers, some of them attention layers, each followed by routed experts and a
// shared SwiGLU; a multiplier on the embedding, on every addition to the residual stream, and a divisor of the logits.
//
//     h = embedding_multiplier * embedding
//     h += residual_multiplier * {mamba2_mixer | attention}(rms_norm(h))
//     h += residual_multiplier * (experts(n) + shared(n)), n = rms_norm(h);  L times; rms_norm; head / logits_scaling
//
// state    a Mamba-2 layer: conv and ssm; an attention layer: key and value
// probes   embed; layers.{l}.: norm, mixer.* or attn.*, mixed, ff_norm, ff.{router, routing, experts}, ff.shared.*,
//          out; norm_f; logits
// weights  cases/spec/models/granitemoehybrid.cpp
#pragma once

#include "cases/spec/models/granitemoehybrid.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class GraniteMoeHybrid final : public Network {
 public:
  explicit GraniteMoeHybrid(const ModelConfig& config) : fields_(granitemoehybrid_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  GraniteMoeHybridFields fields_;
};

}  // namespace assay::reference

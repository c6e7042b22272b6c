// Bamba (models.md M4): Mamba-2 layers, some of them attention layers, each followed by a SwiGLU.
//
//     h += {mamba2_mixer | attention}(rms_norm(h));  h += feed_forward(rms_norm(h));  L times; rms_norm; head
//
// state    a Mamba-2 layer: conv and ssm; an attention layer: key and value
// probes   embed; layers.{l}.: norm, mixer.* or attn.*, mixed, ff_norm, ff.*, out; norm_f; logits
// weights  cases/spec/models/bamba.cpp
#pragma once

#include "cases/spec/models/bamba.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Bamba final : public Network {
 public:
  explicit Bamba(const ModelConfig& config) : fields_(bamba_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  BambaFields fields_;
};

}  // namespace assay::reference

// Mamba-2 (models.md M2): h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> z, xBC, dt;  xBC -> causal_conv1d -> silu -> x, B, C;  ssd;  gated rms_norm(y, z);  out_proj
// state    a layer: conv and ssm, both zero before the first column (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.{in_proj, conv1d, dt, ssd, norm, out_proj}, out; norm_f; logits
// weights  cases/spec/models/mamba2.cpp
#pragma once

#include "cases/spec/models/mamba2.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Mamba2 final : public Network {
 public:
  explicit Mamba2(const ModelConfig& config) : fields_(mamba2_fields(config)), mixer_(fields_.mixer()) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  Mamba2Fields fields_;
  Mamba2MixerShape mixer_;
};

}  // namespace assay::reference

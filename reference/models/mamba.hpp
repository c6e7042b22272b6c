// Mamba-1 (models.md M1): h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> x, z;  x -> causal_conv1d -> silu -> x_proj -> dt, B, C;  selective_scan;  gate with z;  out_proj
// state    a layer: conv and ssm, both zero before the first column (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.{in_proj, conv1d, x_proj, dt, scan, gate, out_proj}, out; norm_f; logits
// weights  cases/spec/models/mamba.cpp
#pragma once

#include "cases/spec/models/mamba.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Mamba final : public Network {
 public:
  explicit Mamba(const ModelConfig& config) : fields_(mamba_fields(config)), mixer_(fields_.mixer()) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  MambaFields fields_;
  MambaMixerShape mixer_;
};

}  // namespace assay::reference

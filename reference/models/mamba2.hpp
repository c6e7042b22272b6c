// Mamba-2 (models.md M2): h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> z, xBC, dt;  xBC -> causal_conv1d -> silu -> x, B, C;  ssd;  gated rms_norm(y, z);  out_proj
// state    a layer: conv and ssm
// probes   embed; layers.{l}.: norm, mixer.{in_proj, conv1d, dt, ssd, norm, out_proj}, out; norm_f; logits
// weights  cases/spec/models/mamba2.cpp
#pragma once

#include "cases/spec/models/mamba2.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/models/pure_backbone.hpp"

namespace assay::reference {

class Mamba2 final : public PureNetwork<Mamba2MixerShape, mamba2_mixer> {
 public:
  explicit Mamba2(const ModelConfig& config) : Mamba2(mamba2_fields(config)) {}

 private:
  explicit Mamba2(const Mamba2Fields& f) : PureNetwork(f.backbone(), f.layer_norm_epsilon, f.mixer()) {}
};

}  // namespace assay::reference

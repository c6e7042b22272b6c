// Mamba-1 (models.md M1): h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> x, z;  x -> causal_conv1d -> silu -> x_proj -> dt, B, C;  selective_scan;  gate with z;  out_proj
// state    a layer: conv and ssm
// probes   embed; layers.{l}.: norm, mixer.{in_proj, conv1d, x_proj, dt, scan, gate, out_proj}, out; norm_f; logits
// weights  cases/spec/models/mamba.cpp
#pragma once

#include "cases/spec/models/mamba.hpp"
#include "reference/blocks/mamba_mixer.hpp"
#include "reference/models/pure_backbone.hpp"

namespace assay::reference {

class Mamba final : public PureNetwork<MambaMixerShape, mamba_mixer> {
 public:
  explicit Mamba(const ModelConfig& config) : Mamba(mamba_fields(config)) {}

 private:
  explicit Mamba(const MambaFields& f) : PureNetwork(f.backbone(), f.layer_norm_epsilon, f.mixer()) {}
};

}  // namespace assay::reference

// Falcon-Mamba (models.md M3): h += mixer(rms_norm(h)), L times; then rms_norm and the head, the embedding where tied.
//
// mixer    in_proj -> x, z;  x -> causal_conv1d -> silu -> x_proj -> dt, B, C, each normed without weights;
//          selective_scan;  gate with z;  out_proj
// state    a layer: conv and ssm
// probes   embed; layers.{l}.: norm, mixer.{in_proj, conv1d, x_proj, selection, dt, scan, gate, out_proj}, out; norm_f;
//          logits
// weights  cases/spec/models/falcon_mamba.cpp
#pragma once

#include "cases/spec/models/falcon_mamba.hpp"
#include "reference/blocks/mamba_mixer.hpp"
#include "reference/models/pure_backbone.hpp"

namespace assay::reference {

class FalconMamba final : public PureNetwork<MambaMixerShape, mamba_mixer> {
 public:
  explicit FalconMamba(const ModelConfig& config) : FalconMamba(falcon_mamba_fields(config)) {}

 private:
  explicit FalconMamba(const FalconMambaFields& f) : PureNetwork(f.backbone, f.layer_norm_epsilon, f.mixer) {}
};

}  // namespace assay::reference

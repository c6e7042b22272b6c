// Jamba (models.md M7): h += mixer or attention(rms_norm(h)); h += dense or routed feed-forward(rms_norm(h)), L times;
// then rms_norm and the head.
//
// mixer    Mamba-1 with weighted norms of dt, B and C
// state    a layer: conv and ssm, or key and value (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: norm, mixer.* or attn.*, mixed, ff_norm, ff.*, out; norm_f; logits
// weights  cases/spec/models/jamba.cpp
#pragma once

#include "cases/spec/models/jamba.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Jamba final : public Network {
 public:
  explicit Jamba(const ModelConfig& config) : fields_(jamba_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  JambaFields fields_;
};

}  // namespace assay::reference

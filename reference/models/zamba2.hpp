// Zamba2 (models.md M15): Mamba-2 layers, some of them hybrid.
//
//     pure    h += mixer(rms_norm(h))
//     hybrid  h += mixer(rms_norm(h + T)), T = shared_transformer(h, e0), e0 the embedded tokens
//
// Hybrid layer number j calls block j mod num_mem_blocks with adapters number j. T enters the norm only, not the
// residual stream. Then rms_norm and the tied head.
//
// state    every layer: conv and ssm; hybrid layers: key and value too (reference/blocks/layer_state.hpp)
// probes   embed; layers.{l}.: (shared_norm, attn.*, ff_norm, ff.*, shared_out,) norm, mixer.*, out; norm_f; logits
// weights  cases/spec/models/zamba2.cpp
#pragma once

#include "cases/spec/models/zamba2.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Zamba2 final : public Network {
 public:
  explicit Zamba2(const ModelConfig& config) : fields_(zamba2_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  // T of hybrid layer l.
  at::Tensor shared(const at::Tensor& h, const at::Tensor& e0, int64_t l, const WeightStore& weights, LayerState& state,
                    const Pass& pass) const;

  Zamba2Fields fields_;
};

}  // namespace assay::reference

// Zamba (models.md M14): h += mixer(rms_norm(h)), and in a hybrid layer h += mixer(rms_norm(h + T)) with T from the
// shared transformer of h and the embedded tokens; then rms_norm and the embedding as the head. T does not enter the
// residual stream.
//
// mixer    Mamba-1 by heads
// state    a layer: conv and ssm; a hybrid one key and value too: the block is shared, its keys are not
// probes   embed; layers.{l}.: shared_norm, attn.*, ff_norm, ff.*, shared_out (hybrid), norm, mixer.*, out; norm_f;
//          logits
// weights  cases/spec/models/zamba.cpp
#pragma once

#include "cases/spec/models/zamba.hpp"
#include "reference/models/network.hpp"

namespace assay::reference {

class Zamba final : public Network {
 public:
  explicit Zamba(const ModelConfig& config) : fields_(zamba_fields(config)) {}
  std::vector<LayerState> initial_states(int64_t rows) const override;
  at::Tensor forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                     const Pass& pass) const override;
  int64_t vocabulary() const override { return fields_.vocab_size; }

 private:
  ZambaFields fields_;
};

}  // namespace assay::reference

// What a block adds to a model's tables of weights and probes. Each block has a shape (cases/spec/blocks/<block>.hpp)
// and two functions, describe_weights and describe_probes; a model's tables are those of its blocks in order.
//
// Probe names. A layer's are "layers.{l}." and then, as far as the layer has them and in order of computation:
//   norm, mixer.* (recurrent: mamba, mamba2, delta rule, short convolution), attn.*, mixed (residual stream after the
//   mixer), ff_norm, ff.*, out (residual stream after the layer). Outside the layers: embed, norm_f, logits.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cases/spec/model_spec.hpp"

namespace assay {

class ProbeTable {
 public:
  void add(std::string name, Shape shape, std::string op, int64_t layer);
  // Most of it may rightly be zero.
  void add_sparse(std::string name, Shape shape, std::string op, int64_t layer);
  void add_state(std::string name, Shape shape, std::string op, int64_t layer, int64_t heads = 1);
  // A state that grows by a column [heads, width] a token; `follows` is the sequence probe that the columns repeat.
  void add_growing_state(std::string name, Shape column, std::string op, int64_t layer, std::string follows);

  // Sequence probes in order of computation, then the states.
  std::vector<ProbeSpec> take();

 private:
  std::vector<ProbeSpec> sequence_, states_;
};

using WeightTable = std::vector<WeightSpec>;

// weight [out, in], and its bias where there is one; name without ".weight".
void describe_linear(WeightTable& table, const std::string& name, int64_t out, int64_t in, Role role, bool has_bias,
                     std::vector<WeightSpec::RowScale> row_scales = {});

}  // namespace assay

#include "reference/blocks/attention.hpp"

#include <string>

#include "reference/blocks/adapter.hpp"
#include "reference/ops/attention.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rms_norm.hpp"
#include "reference/ops/rotary.hpp"

namespace assay::reference {

namespace {

at::Tensor head_norm(const at::Tensor& x, const at::Tensor& weight, const AttentionShape& shape) {
  const bool is_zero_centred = shape.head_norm == AttentionShape::HeadNorm::kZeroCentred;
  return reference::rms_norm(x, is_zero_centred ? weight + 1 : weight, shape.epsilon);
}

}  // namespace

at::Tensor attention_block(const at::Tensor& h, const Place& place, const AttentionShape& shape, LayerState& state,
                           const Pass& pass, int64_t adapter) {
  const int64_t rows = h.size(0), length = h.size(1), hd = shape.head_dim;
  const auto project = [&](const std::string& which) {
    const std::string name = which + "_proj";
    const at::Tensor y = pass.rounded(reference::linear(h, place.weight(name + ".weight"), place.find(name + ".bias")));
    if (shape.adapter_rank == 0) return y;
    return pass.rounded(
        y + adapter_of(h, place, "linear_" + which + "_adapter_list." + std::to_string(adapter) + ".", pass));
  };

  at::Tensor q = project("q"), gate;
  if (shape.has_output_gate) {
    // Head by head: hd lanes of the query, hd lanes of its gate.
    const std::vector<at::Tensor> halves = q.view({rows, length, shape.heads, 2 * hd}).split(hd, -1);
    q = halves[0];
    gate = halves[1];
  }
  q = q.reshape({rows, length, shape.heads, hd});
  at::Tensor k = project("k").view({rows, length, shape.kv_heads, hd});
  const at::Tensor v = project("v").view({rows, length, shape.kv_heads, hd});
  if (shape.head_norm != AttentionShape::HeadNorm::kNone) {
    q = pass.rounded(head_norm(q, place.weight(shape.q_norm_name + ".weight"), shape));
    k = pass.rounded(head_norm(k, place.weight(shape.k_norm_name + ".weight"), shape));
  }
  if (shape.key_multiplier != 1) k = pass.rounded(k * shape.key_multiplier);
  q = q.transpose(1, 2);
  k = k.transpose(1, 2);
  if (shape.rotary.is_on()) {
    q = reference::rotary(q, pass.positions, shape.rotary);
    k = reference::rotary(k, pass.positions, shape.rotary);
  }
  q = pass.keep(place.probe + "q", q.transpose(1, 2)).transpose(1, 2);
  k = pass.keep(place.probe + "k", k.transpose(1, 2)).transpose(1, 2);
  pass.keep(place.probe + "v", v);

  state.key = at::cat({state.key, k}, 2);
  state.value = at::cat({state.value, v.transpose(1, 2)}, 2);
  at::Tensor y = pass.keep(place.probe + "attention",
                           reference::attention(q, state.key, state.value, pass.seen_mask, shape.scale));
  if (shape.has_output_gate) y = pass.keep(place.probe + "gated", y * at::sigmoid(gate));
  return pass.keep(place.probe + "out_proj",
                   reference::linear(y.reshape({rows, length, shape.width()}), place.weight(shape.out_name + ".weight"),
                                     place.find(shape.out_name + ".bias")));
}

}  // namespace assay::reference

#include "fast/blocks/attention.hpp"

#include "fast/blocks/norm.hpp"
#include "fast/blocks/rotary_frequencies.hpp"
#include "fast/kernels/attention.hpp"
#include "fast/kernels/gate.hpp"
#include "fast/kernels/kv_append.hpp"
#include "fast/kernels/rotary.hpp"

namespace assay::fast {

namespace {

using HeadNorm = AttentionShape::HeadNorm;

// Every head of every token as a row.
Matrix by_head(const Matrix& x, int64_t heads, int64_t head_stride, int64_t width) {
  return {x.data, x.rows * heads, width, head_stride};
}

void rotate(Pass& pass, const AttentionShape& shape, const float* frequencies, const Matrix& q, int64_t q_head_stride,
            const Matrix& k) {
  const auto in_place = [](const Matrix& x, int64_t head_stride, int64_t heads) {
    return RotaryHeads<float>{x.data, x.stride, head_stride, x.data, x.stride, head_stride, heads};
  };
  RotaryParams<float> p;
  p.q = in_place(q, q_head_stride, shape.heads);
  p.k = in_place(k, shape.head_dim, shape.kv_heads);
  p.positions = pass.positions;
  p.frequencies = frequencies;
  p.tokens = q.rows;
  p.width = shape.head_dim;
  p.rotary_width = shape.rotary.width;
  p.attention_factor = static_cast<float>(shape.rotary.attention_factor);
  rotary(p, pass.context.stream());
  pass.context.record(rotary_id(p));
}

// The layer's cache, or one of this call's columns alone where the session has none.
LayerState cache_of(Pass& pass, const AttentionShape& shape, int64_t layer, const std::string& probe) {
  LayerState state = pass.states[static_cast<size_t>(layer)];
  if (state.key != nullptr) return state;
  const Shape columns = {pass.rows, shape.kv_heads, pass.columns, shape.head_dim};
  state.key = allocate<float>(pass.scratch, columns, probe + "k_cache").data;
  state.value = allocate<float>(pass.scratch, columns, probe + "v_cache").data;
  state.capacity = pass.columns;
  return state;
}

void append(Pass& pass, const AttentionShape& shape, const Matrix& k, const Matrix& v, const LayerState& cache) {
  KvAppendParams<float> p;
  p.k = k.data;
  p.k_stride = k.stride;
  p.v = v.data;
  p.v_stride = v.stride;
  p.k_cache = cache.key;
  p.v_cache = cache.value;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.kv_heads = shape.kv_heads;
  p.width = p.value_width = shape.head_dim;
  p.capacity = cache.capacity;
  p.past = pass.past;
  p.past_on_device = pass.past_on_device;
  kv_append(p, pass.context.stream());
  pass.context.record(kv_append_id(p));
}

void attend(Pass& pass, const AttentionShape& shape, const Matrix& q, int64_t q_head_stride, const LayerState& cache,
            const Matrix& y) {
  AttentionParams<float> p;
  p.q = q.data;
  p.q_stride = q.stride;
  p.q_head_stride = q_head_stride;
  p.k = cache.key;
  p.v = cache.value;
  p.mask = pass.seen_mask;
  p.mask_stride = pass.seen_mask_stride;
  p.y = y.data;
  p.batch = pass.rows;
  p.length = pass.columns;
  p.heads = shape.heads;
  p.kv_heads = shape.kv_heads;
  p.width = p.value_width = shape.head_dim;
  p.capacity = cache.capacity;
  p.past = pass.past;
  p.past_on_device = pass.past_on_device;
  p.scale = static_cast<float>(shape.scale);
  const FormChoice form = pass.forms.attention;
  if (form == FormChoice::kUpdate || (form == FormChoice::kByCall && prefers_decode(p))) {
    p.workspace =
        pass.scratch.allocate(static_cast<int64_t>(attention_decode_workspace_bytes(p)), "attention_decode workspace");
    attention_decode(p, pass.context.stream());
    pass.context.record(attention_decode_id(p));
  } else {
    attention_prefill(p, pass.context.stream());
    pass.context.record(attention_prefill_id(p));
  }
}

void gate_output(Pass& pass, const AttentionShape& shape, const Matrix& y, const Matrix& q_and_gate) {
  GateParams<float> p;
  p.x = y.data;
  p.gate = q_and_gate.data + shape.head_dim;
  p.gate_stride = q_and_gate.stride;
  p.gate_head_stride = 2 * shape.head_dim;
  p.y = y.data;
  p.rows = y.rows;
  p.heads = shape.heads;
  p.width = shape.head_dim;
  gate(p, pass.context.stream());
  pass.context.record(gate_id(p));
}

}  // namespace

AttentionWeights attention_weights(Weights& weights, const std::string& prefix, const AttentionShape& shape,
                                   int64_t adapter) {
  AttentionWeights attention;
  attention.q = weights.at(prefix + "q_proj.weight");
  attention.q_bias = weights.optional(prefix + "q_proj.bias");
  attention.k = weights.at(prefix + "k_proj.weight");
  attention.k_bias = weights.optional(prefix + "k_proj.bias");
  attention.v = weights.at(prefix + "v_proj.weight");
  attention.v_bias = weights.optional(prefix + "v_proj.bias");
  attention.out = weights.at(prefix + shape.out_name + ".weight");
  attention.out_bias = weights.optional(prefix + shape.out_name + ".bias");
  if (shape.head_norm != HeadNorm::kNone) {
    attention.q_norm = weights.at(prefix + shape.q_norm_name + ".weight");
    attention.k_norm = weights.at(prefix + shape.k_norm_name + ".weight");
  }
  if (shape.adapter_rank > 0) {
    const auto of = [&](const std::string& which) {
      return fast::adapter(weights, prefix + "linear_" + which + "_adapter_list." + std::to_string(adapter) + ".");
    };
    attention.q_adapter = of("q");
    attention.k_adapter = of("k");
    attention.v_adapter = of("v");
  }
  if (shape.rotary.is_on())
    attention.frequencies = weights.keep("rotary frequencies", rotary_frequencies(shape.rotary));
  return attention;
}

void attention_block(Pass& pass, const AttentionShape& shape, const AttentionWeights& weights, const std::string& probe,
                     int64_t layer, const Matrix& input, const Matrix& output) {
  const int64_t hd = shape.head_dim, kv_width = shape.kv_heads * hd;
  // With an output gate a head's query lies before its gate.
  const int64_t q_head_stride = shape.has_output_gate ? 2 * hd : hd;
  Scratch scratch(pass.scratch);

  const Matrix q = pass.buffer(shape.heads * q_head_stride, probe + "q"), k = pass.buffer(kv_width, probe + "k"),
               v = pass.buffer(kv_width, probe + "v");
  project(pass, input, weights.q, weights.q_bias, q);
  add_adapter(pass, input, weights.q_adapter, q);
  project(pass, input, weights.k, weights.k_bias, k);
  add_adapter(pass, input, weights.k_adapter, k);
  project(pass, input, weights.v, weights.v_bias, v);
  add_adapter(pass, input, weights.v_adapter, v);

  const Matrix q_heads = by_head(q, shape.heads, q_head_stride, hd), k_heads = by_head(k, shape.kv_heads, hd, hd);
  if (shape.head_norm != HeadNorm::kNone) {
    const NormKind kind{shape.epsilon, shape.head_norm == HeadNorm::kZeroCentred};
    norm_in_place(pass, q_heads, weights.q_norm.f32(), kind);
    norm_in_place(pass, k_heads, weights.k_norm.f32(), kind);
  }
  if (shape.key_multiplier != 1) scale(pass, k, shape.key_multiplier, k);
  if (weights.frequencies != nullptr) rotate(pass, shape, weights.frequencies, q, q_head_stride, k);
  pass.probes.add(probe + "q", q_heads, {shape.heads, hd});
  pass.probes.add(probe + "k", k_heads, {shape.kv_heads, hd});
  pass.probes.add(probe + "v", v, {shape.kv_heads, hd});

  const LayerState cache = cache_of(pass, shape, layer, probe);
  append(pass, shape, k, v, cache);
  const Matrix y = pass.buffer(shape.width(), probe + "attention");
  attend(pass, shape, q, q_head_stride, cache, y);
  pass.probes.add(probe + "attention", y, {shape.heads, hd});
  if (shape.has_output_gate) {
    gate_output(pass, shape, y, q);
    pass.probes.add(probe + "gated", y, {shape.heads, hd});
  }
  project(pass, y, weights.out, weights.out_bias, output);
  pass.probes.add(probe + "out_proj", output);
  scratch.close();
}

}  // namespace assay::fast

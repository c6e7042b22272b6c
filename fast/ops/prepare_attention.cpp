#include "fast/ops/prepare_attention.hpp"

#include <cmath>
#include <string>

#include "cases/spec/op_attributes.hpp"
#include "fast/blocks/rotary_frequencies.hpp"
#include "fast/kernels/attention.hpp"
#include "fast/kernels/gate.hpp"
#include "fast/kernels/kv_append.hpp"
#include "fast/kernels/rotary.hpp"

namespace assay::fast {

namespace {

// `rows` blocks of `width` elements, dense, to every to_stride elements: what lies between stays as it is.
void spread(const float* from, float* to, int64_t rows, int64_t width, int64_t to_stride, cudaStream_t stream) {
  const size_t bytes = static_cast<size_t>(width) * sizeof(float);
  check(cudaMemcpy2DAsync(to, static_cast<size_t>(to_stride) * sizeof(float), from, bytes, bytes,
                          static_cast<size_t>(rows), cudaMemcpyDeviceToDevice, stream),
        "copy of an input");
}

// A whole number of at least `least`.
int64_t whole_attribute(OpInputs& in, const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
  const double value = in.attribute(name, static_cast<double>(otherwise));
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most)) || value != std::floor(value))
    in.refuse(name, std::to_string(value) + " is not a whole number from " + std::to_string(least) + " to " +
                        std::to_string(most));
  return static_cast<int64_t>(value);
}

}  // namespace

void prepare_rotary(Preparation& prepare) {
  OpInputs& in = prepare.in;
  RotaryParams<float> p;
  p.q.x = in.required("x", "BLHD");
  p.positions = in.ids("positions", "BL");
  p.width = in.size('D');
  const RotaryShape shape = rotary_attributes(in, p.width);
  in.finish();
  const std::vector<float> frequencies = rotary_frequencies(shape);
  p.frequencies =
      upload<float>(prepare.arena, HostTensor({shape.width / 2}, frequencies), "frequencies", prepare.context.stream())
          .data;
  p.tokens = in.size('B') * in.size('L');
  p.q.heads = in.size('H');
  p.q.x_head_stride = p.q.y_head_stride = p.width;
  p.q.x_stride = p.q.y_stride = p.q.heads * p.width;
  p.rotary_width = shape.width;
  p.attention_factor = static_cast<float>(shape.attention_factor);
  p.q.y = prepare.output("y", {in.size('B'), in.size('L'), p.q.heads, p.width});
  prepare.launch(p, rotary<float>, rotary_id<float>);
}

void prepare_attention(Preparation& prepare) {
  OpInputs& in = prepare.in;
  AttentionParams<float> p;
  p.q = in.required("q", "BLHD");
  p.k = in.required("k", "BGTD");
  p.v = in.required("v", "BGTE");
  p.mask = in.optional_mask("mask", "BT");
  p.batch = in.size('B');
  p.length = in.size('L');
  p.heads = in.size('H');
  p.kv_heads = in.size('G');
  p.width = in.size('D');
  p.value_width = in.size('E');
  const int64_t columns = p.mask_stride = in.size('T');
  p.scale = static_cast<float>(in.attribute("scale", 1 / std::sqrt(static_cast<double>(p.width))));
  p.capacity = whole_attribute(in, "capacity", columns, columns, int64_t{1} << 30);
  in.finish();
  if (p.length > columns)
    in.refuse("k", std::to_string(columns) + " columns for " + std::to_string(p.length) + " queries");
  p.past = columns - p.length;
  p.q_head_stride = p.width;
  p.q_stride = p.heads * p.width;
  if (p.capacity > columns) {
    const auto roomy = [&](const float* dense, int64_t width, const char* label) {
      const Tensor<float> cache = allocate<float>(prepare.arena, {p.batch, p.kv_heads, p.capacity, width}, label);
      spread(dense, cache.data, p.batch * p.kv_heads, columns * width, p.capacity * width, prepare.context.stream());
      return cache.data;
    };
    p.k = roomy(p.k, p.width, "key cache");
    p.v = roomy(p.v, p.value_width, "value cache");
  }
  p.y = prepare.output("y", {p.batch, p.length, p.heads, p.value_width});
  const double length = static_cast<double>(p.length), past = static_cast<double>(p.past);
  prepare.op.flops = 2.0 * static_cast<double>(p.batch * p.heads * (p.width + p.value_width)) *
                     (length * past + length * (length + 1) / 2);
  prepare.op.launch = [&context = prepare.context, &arena = prepare.arena, p,
                       is_decode = prepare.call.form == "decode"]() mutable {
    if (!is_decode) {
      attention_prefill(p, context.stream());
      context.record(attention_prefill_id(p));
      return;
    }
    Scratch scratch(arena);
    p.workspace =
        arena.allocate(static_cast<int64_t>(attention_decode_workspace_bytes(p)), "attention_decode workspace");
    attention_decode(p, context.stream());
    context.record(attention_decode_id(p));
    scratch.close();
  };
}

void prepare_kv_append(Preparation& prepare) {
  OpInputs& in = prepare.in;
  KvAppendParams<float> p;
  p.k = in.required("k", "BLGD");
  p.v = in.required("v", "BLGE");
  const float* k_cache = in.required("k_cache", "BGTD");
  const float* v_cache = in.required("v_cache", "BGTE");
  p.batch = in.size('B');
  p.length = in.size('L');
  p.kv_heads = in.size('G');
  p.width = in.size('D');
  p.value_width = in.size('E');
  p.capacity = in.size('T');
  p.past = whole_attribute(in, "past", 0, 0, p.capacity - p.length);
  in.finish();
  p.k_stride = p.kv_heads * p.width;
  p.v_stride = p.kv_heads * p.value_width;
  // Appended in place: the caches are copied beforehand, so that launches are timed without it.
  const auto copied = [&](const char* name, const float* from, int64_t width) {
    float* to = prepare.output(name, {p.batch, p.kv_heads, p.capacity, width});
    spread(from, to, p.batch * p.kv_heads, p.capacity * width, p.capacity * width, prepare.context.stream());
    return to;
  };
  p.k_cache = copied("k_cache", k_cache, p.width);
  p.v_cache = copied("v_cache", v_cache, p.value_width);
  // What is appended is read and written; of the caches nothing else moves.
  const int64_t other = p.batch * p.kv_heads * (2 * p.capacity - p.length) * (p.width + p.value_width);
  prepare.op.bytes -= 4.0 * static_cast<double>(other);
  prepare.launch(p, kv_append<float>, kv_append_id<float>);
}

void prepare_gate(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GateParams<float> p;
  p.x = in.required("x", "THW");
  const float* gates = in.required("gate", "THW");
  in.finish();
  p.rows = in.size('T');
  p.heads = in.size('H');
  p.width = in.size('W');
  // As in a projection that alternates head by head: a head's gate lies behind its query.
  p.gate_head_stride = 2 * p.width;
  p.gate_stride = p.heads * p.gate_head_stride;
  const Tensor<float> both = allocate<float>(prepare.arena, {p.rows, p.heads, 2 * p.width}, "queries and gates");
  spread(gates, both.data + p.width, p.rows * p.heads, p.width, 2 * p.width, prepare.context.stream());
  p.gate = both.data + p.width;
  p.y = prepare.output("y", {p.rows, p.heads, p.width});
  prepare.launch(p, gate<float>, gate_id<float>);
}

}  // namespace assay::fast

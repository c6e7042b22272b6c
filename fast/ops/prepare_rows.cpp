#include "fast/ops/prepare_rows.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/op_attributes.hpp"
#include "fast/kernels/argmax.hpp"
#include "fast/kernels/embedding.hpp"
#include "fast/kernels/feed_forward.hpp"
#include "fast/kernels/gather_columns.hpp"
#include "fast/kernels/gather_rows.hpp"
#include "fast/kernels/scaled_add.hpp"
#include "fast/kernels/shared_gate.hpp"
#include "fast/kernels/top_log_probs.hpp"

namespace assay::fast {

namespace {

// Outputs are float32: places below `limit` are looked up in the table of the first numbers.
EmbeddingParams<float> as_numbers(Preparation& prepare, const int64_t* places, const std::string& name, Shape shape,
                                  int64_t limit) {
  std::vector<float> numbers(static_cast<size_t>(limit));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  EmbeddingParams<float> lookup;
  lookup.weight =
      upload<float>(prepare.arena, HostTensor({limit, 1}, numbers), "numbers", prepare.context.stream()).data;
  lookup.ids = places;
  lookup.tokens = element_count(shape);
  lookup.y = prepare.output(name, std::move(shape));
  lookup.vocabulary = limit;
  lookup.width = 1;
  return lookup;
}

// A search for places in a workspace of scratch, then the look-up that makes float32 of what it found.
template <class Params>
void launch_search(Preparation& prepare, Params p, const EmbeddingParams<float>& lookup,
                   size_t (*workspace_bytes)(const Params&), void (*search)(const Params&, cudaStream_t),
                   std::string_view (*id)(const Params&)) {
  prepare.op.launch = [&context = prepare.context, &arena = prepare.arena, p, lookup, workspace_bytes, search,
                       id]() mutable {
    Scratch scratch(arena);
    p.workspace = arena.allocate(static_cast<int64_t>(workspace_bytes(p)), "workspace of a search");
    search(p, context.stream());
    context.record(id(p));
    embedding(lookup, context.stream());
    context.record(embedding_id(lookup));
    scratch.close();
  };
}

}  // namespace

void prepare_feed_forward(Preparation& prepare) {
  OpInputs& in = prepare.in;
  FeedForwardParams<float> p;
  const float* gate = in.required("gate", "TF");
  const float* up = in.optional("up", "TF");
  p.activation = static_cast<ActivationKind>(kind_attribute(in, "feed_forward", "activation", 3));
  p.multiplier = static_cast<float>(in.attribute("multiplier", 1));
  in.finish();
  p.rows = in.size('T');
  p.width = in.size('F');
  p.gate = gate;
  p.gate_stride = p.width;
  if (up != nullptr) {
    // Side by side in one row, as a fused projection leaves them.
    const Tensor<float> both = allocate<float>(prepare.arena, {p.rows, 2 * p.width}, "gate and up");
    const size_t bytes = static_cast<size_t>(p.width) * sizeof(float);
    for (const auto& [from, to] : {std::pair{gate, both.data}, std::pair{up, both.data + p.width}})
      check(cudaMemcpy2DAsync(to, 2 * bytes, from, bytes, bytes, static_cast<size_t>(p.rows), cudaMemcpyDeviceToDevice,
                              prepare.context.stream()),
            "copy of an input");
    p.gate = both.data;
    p.up = both.data + p.width;
    p.gate_stride = p.up_stride = 2 * p.width;
  }
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.launch(p, feed_forward<float>, feed_forward_id<float>);
}

void prepare_scaled_add(Preparation& prepare) {
  OpInputs& in = prepare.in;
  ScaledAddParams<float> p;
  p.x = in.required("x", "TW");
  p.residual = in.optional("residual", "TW");
  p.scale = static_cast<float>(in.attribute("scale", 1));
  in.finish();
  p.rows = in.size('T');
  p.width = p.x_stride = p.residual_stride = p.y_stride = in.size('W');
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.launch(p, scaled_add<float>, scaled_add_id<float>);
}

void prepare_shared_gate(Preparation& prepare) {
  OpInputs& in = prepare.in;
  SharedGateParams<float> p;
  p.x = in.required("x", "TW");
  p.gate = in.required("gate", "T");
  p.residual = in.optional("residual", "TW");
  in.finish();
  p.rows = in.size('T');
  p.width = in.size('W');
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.launch(p, shared_gate<float>, shared_gate_id<float>);
}

void prepare_argmax(Preparation& prepare) {
  OpInputs& in = prepare.in;
  ArgmaxParams<float> p;
  p.x = in.required("x", "TV");
  in.finish();
  p.rows = in.size('T');
  p.width = p.x_stride = in.size('V');
  p.y = allocate<int64_t>(prepare.arena, {p.rows}, "places").data;
  const EmbeddingParams<float> lookup = as_numbers(prepare, p.y, "y", {p.rows}, p.width);
  launch_search(prepare, p, lookup, argmax_workspace_bytes<float>, argmax<float>, argmax_id<float>);
}

void prepare_top_log_probs(Preparation& prepare) {
  OpInputs& in = prepare.in;
  TopLogProbsParams<float> p;
  p.x = in.required("x", "TV");
  p.chosen = in.count_attribute("k", 1);
  in.finish();
  p.rows = in.size('T');
  p.width = p.x_stride = in.size('V');
  p.values = prepare.output("values", {p.rows, p.chosen});
  p.ids = allocate<int64_t>(prepare.arena, {p.rows, p.chosen}, "places").data;
  const EmbeddingParams<float> lookup = as_numbers(prepare, p.ids, "ids", {p.rows, p.chosen}, p.width);
  launch_search(prepare, p, lookup, top_log_probs_workspace_bytes<float>, top_log_probs<float>,
                top_log_probs_id<float>);
}

void prepare_gather_rows(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GatherRowsParams<float> p;
  p.x = in.required("x", "RIW");
  p.source = in.ids("source", "B");
  in.finish();
  p.source_rows = in.size('R');
  p.rows = in.size('B');
  p.inner = in.size('I');
  p.width = p.x_stride = p.y_stride = in.size('W');
  if (in.largest_id() >= p.source_rows)
    in.refuse("source", std::to_string(in.largest_id()) + " is none of " + std::to_string(p.source_rows) + " rows");
  p.y = prepare.output("y", {p.rows, p.inner, p.width});
  prepare.op.bytes -= unread_bytes(prepare.call.required("source"), p.source_rows, p.inner * p.width);
  prepare.launch(p, gather_rows<float>, gather_rows_id<float>);
}

void prepare_gather_columns(Preparation& prepare) {
  OpInputs& in = prepare.in;
  GatherColumnsParams<float> p;
  p.x = in.required("x", "TX");
  in.ids("index", "W");
  in.finish();
  p.rows = in.size('T');
  p.source_width = p.x_stride = in.size('X');
  p.width = p.y_stride = in.size('W');
  if (in.largest_id() >= p.source_width)
    in.refuse("index", std::to_string(in.largest_id()) + " is none of " + std::to_string(p.source_width) + " columns");
  HostTensor index(DType::kI32, {p.width});
  const auto ids = prepare.call.required("index").values<int64_t>();
  std::transform(ids.begin(), ids.end(), index.values<int32_t>().begin(),
                 [](int64_t id) { return static_cast<int32_t>(id); });
  p.index = upload<int32_t>(prepare.arena, index, "index", prepare.context.stream()).data;
  p.y = prepare.output("y", {p.rows, p.width});
  prepare.op.bytes -= unread_bytes(prepare.call.required("index"), p.source_width, p.rows);
  prepare.launch(p, gather_columns<float>, gather_columns_id<float>);
}

}  // namespace assay::fast

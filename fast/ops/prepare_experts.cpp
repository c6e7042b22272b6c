#include "fast/ops/prepare_experts.hpp"

#include <string>
#include <vector>

#include "cases/spec/op_attributes.hpp"
#include "fast/kernels/experts.hpp"
#include "fast/kernels/router.hpp"

namespace assay::fast {

void prepare_router(Preparation& prepare) {
  OpInputs& in = prepare.in;
  RouterParams<float> p;
  p.logits = in.required("logits", "TE");
  p.bias = in.optional("bias", "E");
  p.tokens = in.size('T');
  p.count = p.stride = in.size('E');
  const ExpertsShape shape = router_attributes(in, p.count);
  in.finish();
  p.kind = static_cast<RouterKind>(shape.router);
  p.chosen = shape.chosen;
  p.normalises = shape.normalises;
  p.epsilon = static_cast<float>(shape.epsilon);
  p.scaling = static_cast<float>(shape.scaling);
  p.groups = shape.groups;
  p.chosen_groups = shape.chosen_groups;
  p.experts = allocate<int32_t>(prepare.arena, {p.tokens, p.chosen}, "chosen experts").data;
  p.weights = allocate<float>(prepare.arena, {p.tokens, p.chosen}, "weights of the chosen").data;
  p.dense = prepare.output("routing", {p.tokens, p.count});
  prepare.launch(p, router<float>, router_id<float>);
}

void prepare_experts(Preparation& prepare) {
  OpInputs& in = prepare.in;
  ExpertsParams<float> p;
  p.x = in.required("x", "TX");
  in.ids("ids", "TK");
  p.weights = in.required("weights", "TK");
  p.first = in.required("first", "ERX");
  p.down = in.required("down", "EXF");
  p.activation = static_cast<ActivationKind>(kind_attribute(in, "experts", "activation", 3));
  in.finish();
  p.tokens = in.size('T');
  p.chosen = in.size('K');
  p.count = in.size('E');
  p.width = p.x_stride = in.size('X');
  p.hidden_width = in.size('F');
  if (in.largest_id() >= p.count)
    in.refuse("ids", std::to_string(in.largest_id()) + " is none of " + std::to_string(p.count) + " experts");
  p.is_gated = in.size('R') == 2 * p.hidden_width;
  if (!p.is_gated && in.size('R') != p.hidden_width)
    in.refuse("first",
              std::to_string(in.size('R')) + " rows, neither " + std::to_string(p.hidden_width) + " nor twice that");
  std::vector<int32_t> experts;
  for (const int64_t id : prepare.call.required("ids").values<int64_t>()) experts.push_back(static_cast<int32_t>(id));
  const Tensor<int32_t> on_device = allocate<int32_t>(prepare.arena, {p.tokens, p.chosen}, "chosen experts");
  check(cudaMemcpyAsync(on_device.data, experts.data(), experts.size() * sizeof(int32_t), cudaMemcpyHostToDevice,
                        prepare.context.stream()),
        "upload of the chosen experts");
  prepare.context.synchronize("upload of the chosen experts");  // the host's copy goes with this function
  p.experts = on_device.data;
  p.y = prepare.output("y", {p.tokens, p.width});
  prepare.op.bytes -= unread_bytes(prepare.call.required("ids"), p.count, (in.size('R') + p.hidden_width) * p.width);
  prepare.op.flops = 2.0 * static_cast<double>(p.tokens * p.chosen) * static_cast<double>(p.hidden_width * p.width) *
                     (p.is_gated ? 3 : 2);
  const bool is_gemv = prepare.call.form == "gemv";
  prepare.op.launch = [&context = prepare.context, &arena = prepare.arena, p, is_gemv]() mutable {
    Scratch scratch(arena);
    const size_t bytes = is_gemv ? experts_gemv_workspace_bytes(p) : experts_grouped_workspace_bytes(p);
    p.workspace = arena.allocate(static_cast<int64_t>(bytes), "experts workspace");
    if (is_gemv) {
      experts_gemv(p, context.stream());
      context.record(experts_gemv_id(p));
    } else {
      experts_grouped(p, context.stream());
      context.record(experts_grouped_id(p));
    }
    scratch.close();
  };
}

}  // namespace assay::fast

#include "fast/blocks/experts.hpp"

#include "fast/kernels/experts.hpp"
#include "fast/kernels/router.hpp"

namespace assay::fast {

namespace {

// Chosen experts and their weights, [T, k] each.
struct Routing {
  int32_t* experts;
  float* weights;
};

Routing route(Pass& pass, const ExpertsShape& shape, const ExpertsWeights& weights, const std::string& probe,
              const Matrix& input) {
  const int64_t tokens = input.rows;
  const Matrix scores = pass.buffer(shape.count, probe + "router");
  project(pass, input, weights.router, {}, scores);
  pass.probes.add(probe + "router", scores);

  RouterParams<float> p;
  p.logits = scores.data;
  p.stride = scores.stride;
  p.bias = weights.selection_bias.f32();
  p.experts = allocate<int32_t>(pass.scratch, {tokens, shape.chosen}, probe + "chosen experts").data;
  p.weights = allocate<float>(pass.scratch, {tokens, shape.chosen}, probe + "weights of the chosen").data;
  Matrix dense;
  if (pass.probes.is_capturing()) dense = pass.buffer(shape.count, probe + "routing");
  p.dense = dense.data;
  p.tokens = tokens;
  p.count = shape.count;
  p.chosen = shape.chosen;
  p.kind = static_cast<RouterKind>(shape.router);
  p.normalises = shape.normalises;
  p.epsilon = static_cast<float>(shape.epsilon);
  p.scaling = static_cast<float>(shape.scaling);
  p.groups = shape.groups;
  p.chosen_groups = shape.chosen_groups;
  router(p, pass.context.stream());
  pass.context.record(router_id(p));
  pass.probes.add(probe + "routing", dense);
  return {p.experts, p.weights};
}

void run_experts(Pass& pass, const ExpertsShape& shape, const ExpertsWeights& weights, const Routing& routing,
                 const Matrix& x, const Matrix& y) {
  ExpertsParams<float> p;
  p.x = x.data;
  p.x_stride = x.stride;
  p.experts = routing.experts;
  p.weights = routing.weights;
  p.first = weights.first;
  p.down = weights.down;
  p.y = y.data;
  p.tokens = x.rows;
  p.chosen = shape.chosen;
  p.count = shape.count;
  p.width = shape.expert_width();
  p.hidden_width = shape.width;
  p.is_gated = shape.is_gated;
  p.activation = static_cast<ActivationKind>(shape.activation);
  const FormChoice form = pass.forms.experts;
  const auto workspace = [&](size_t bytes) {
    return pass.scratch.allocate(static_cast<int64_t>(bytes), "experts workspace");
  };
  if (form == FormChoice::kUpdate || (form == FormChoice::kByCall && prefers_gemv(p))) {
    p.workspace = workspace(experts_gemv_workspace_bytes(p));
    experts_gemv(p, pass.context.stream());
    pass.context.record(experts_gemv_id(p));
  } else {
    p.workspace = workspace(experts_grouped_workspace_bytes(p));
    experts_grouped(p, pass.context.stream());
    pass.context.record(experts_grouped_id(p));
  }
}

}  // namespace

ExpertsWeights experts_weights(const Weights& weights, const std::string& prefix, const ExpertsShape& shape) {
  ExpertsWeights part;
  part.router = weights.at(prefix + shape.router_name);
  if (shape.has_selection_bias) part.selection_bias = weights.at(prefix + shape.bias_name);
  if (shape.latent > 0) {
    part.fc1 = weights.at(prefix + "fc1_latent_proj.weight");
    part.fc1_bias = weights.optional(prefix + "fc1_latent_proj.bias");
    part.fc2 = weights.at(prefix + "fc2_latent_proj.weight");
    part.fc2_bias = weights.optional(prefix + "fc2_latent_proj.bias");
  }
  if (shape.is_stacked) {
    part.first = weights.at(prefix + shape.gate_name).f32();
    part.down = weights.at(prefix + shape.down_name).f32();
  } else {
    // The first expert's stand where the stack begins (expert_stacks.hpp).
    const std::string expert = prefix + "experts.0.";
    part.first = weights.at(expert + (shape.is_gated ? shape.gate_name : shape.up_name) + ".weight").f32();
    part.down = weights.at(expert + shape.down_name + ".weight").f32();
  }
  return part;
}

void experts(Pass& pass, const ExpertsShape& shape, const ExpertsWeights& weights, const std::string& probe,
             const Matrix& input, const Matrix& output) {
  Scratch scratch(pass.scratch);
  const Routing routing = route(pass, shape, weights, probe, input);
  if (shape.latent > 0) {
    const Matrix x = pass.buffer(shape.latent, probe + "latent"), y = pass.buffer(shape.latent, probe + "latent sum");
    project(pass, input, weights.fc1, weights.fc1_bias, x);
    run_experts(pass, shape, weights, routing, x, y);
    project(pass, y, weights.fc2, weights.fc2_bias, output);
  } else {
    run_experts(pass, shape, weights, routing, input, output);
  }
  pass.probes.add(probe + "experts", output);
  scratch.close();
}

}  // namespace assay::fast

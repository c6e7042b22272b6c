#include "reference/blocks/experts.hpp"

#include <string>

#include "reference/ops/activations.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/router.hpp"

namespace assay::reference {

namespace {

struct ExpertWeights {
  at::Tensor gate, up, down;  // [F, X], [F, X], [X, F]; no gate where the expert is not gated
};

ExpertWeights weights_of(const Place& place, const ExpertsShape& shape, int64_t e) {
  if (shape.is_stacked) {
    const at::Tensor first = place.weight(shape.gate_name)[e], down = place.weight(shape.down_name)[e];
    if (!shape.is_gated) return {{}, first, down};
    return {first.narrow(0, 0, shape.width), first.narrow(0, shape.width, shape.width), down};
  }
  const std::string expert = "experts." + std::to_string(e) + ".";
  return {shape.is_gated ? place.weight(expert + shape.gate_name + ".weight") : at::Tensor(),
          place.weight(expert + shape.up_name + ".weight"), place.weight(expert + shape.down_name + ".weight")};
}

at::Tensor run(const at::Tensor& x, const ExpertWeights& expert, const ExpertsShape& shape, const Pass& pass) {
  const at::Tensor up = pass.rounded(reference::linear(x, expert.up));
  const at::Tensor active = shape.is_gated
                                ? activate(pass.rounded(reference::linear(x, expert.gate)), shape.activation) * up
                                : activate(up, shape.activation);
  return pass.rounded(reference::linear(pass.rounded(active), expert.down));
}

}  // namespace

at::Tensor experts(const at::Tensor& x, const Place& place, const ExpertsShape& shape, const Pass& pass) {
  const at::Tensor scores = pass.keep(place.probe + "router", reference::linear(x, place.weight(shape.router_name)));
  const at::Tensor bias = shape.has_selection_bias ? place.weight(shape.bias_name) : at::Tensor();
  const at::Tensor routing = pass.keep(place.probe + "routing", reference::router(scores, bias, shape));

  const auto project = [&](const at::Tensor& value, const std::string& name) {
    return pass.rounded(reference::linear(value, place.weight(name + ".weight"), place.find(name + ".bias")));
  };
  const at::Tensor input = shape.latent > 0 ? project(x, "fc1_latent_proj") : x;
  at::Tensor sum = at::zeros_like(input);
  for (int64_t e = 0; e < shape.count; ++e)
    sum = sum + routing.narrow(-1, e, 1) * run(input, weights_of(place, shape, e), shape, pass);
  if (shape.latent > 0) sum = project(pass.rounded(sum), "fc2_latent_proj");
  return pass.keep(place.probe + "experts", sum);
}

}  // namespace assay::reference

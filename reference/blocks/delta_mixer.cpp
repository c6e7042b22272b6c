#include "reference/blocks/delta_mixer.hpp"

#include <cmath>
#include <string>

#include "reference/blocks/convolve.hpp"
#include "reference/ops/dt.hpp"
#include "reference/ops/gated_delta_rule.hpp"
#include "reference/ops/gated_rms_norm.hpp"
#include "reference/ops/l2norm.hpp"
#include "reference/ops/linear.hpp"

namespace assay::reference {

namespace {

constexpr double kKeyEpsilon = 1e-6;  // of the key's and the query's length, whatever the config's epsilon

struct Projections {
  at::Tensor qkv;   // [B, L, conv_dim], all heads' q, then all k, then all v
  at::Tensor z;     // [B, L, Hv dv]
  at::Tensor b, a;  // [B, L, Hv]
};

Projections project(const at::Tensor& h, const Place& place, const DeltaMixerShape& shape, const Pass& pass) {
  const auto kept = [&](const std::string& name) {
    return pass.keep(place.probe + name, reference::linear(h, place.weight(name + ".weight")));
  };
  if (!shape.is_packed) {
    const at::Tensor qkv = kept("in_proj_qkv"), z = kept("in_proj_z"), b = kept("in_proj_b"), a = kept("in_proj_a");
    return {qkv, z, b, a};
  }
  // A block for each key head: its q and k, then v and z of the value heads that read it; b and a likewise.
  const int64_t shared_by = shape.value_heads / shape.key_heads, width = shared_by * shape.value_dim;
  const std::vector<at::Tensor> qkvz = kept("in_proj_qkvz")
                                           .unflatten(-1, {shape.key_heads, 2 * shape.key_dim + 2 * width})
                                           .split_with_sizes({shape.key_dim, shape.key_dim, width, width}, -1);
  const std::vector<at::Tensor> ba =
      kept("in_proj_ba").unflatten(-1, {shape.key_heads, 2 * shared_by}).split(shared_by, -1);
  return {at::cat({qkvz[0].flatten(-2), qkvz[1].flatten(-2), qkvz[2].flatten(-2)}, -1), qkvz[3].flatten(-2),
          ba[0].flatten(-2), ba[1].flatten(-2)};
}

}  // namespace

at::Tensor delta_mixer(const at::Tensor& h, const Place& place, const DeltaMixerShape& shape, LayerState& state,
                       const Pass& pass) {
  const Projections in = project(pass.masked(h), place, shape, pass);

  const at::Tensor qkv =
      pass.keep(place.probe + "conv1d", convolve(in.qkv, place.weight("conv1d.weight"), at::Tensor(), state, pass));
  const std::vector<at::Tensor> parts = qkv.split_with_sizes({shape.keys(), shape.keys(), shape.values()}, -1);
  const at::Tensor q = l2norm(parts[0].unflatten(-1, {shape.key_heads, shape.key_dim}), kKeyEpsilon) /
                       std::sqrt(static_cast<double>(shape.key_dim));
  const at::Tensor k = l2norm(parts[1].unflatten(-1, {shape.key_heads, shape.key_dim}), kKeyEpsilon);
  const at::Tensor v = parts[2].unflatten(-1, {shape.value_heads, shape.value_dim});

  const at::Tensor beta = pass.keep(place.probe + "beta", at::sigmoid(in.b));
  const at::Tensor g = -at::exp(place.weight("A_log")) * reference::dt(in.a, place.weight("dt_bias"));
  pass.probes.add(place.probe + "g", g);

  const auto rule = pass.forms.of("gated_delta_rule") == "chunked"
                        ? reference::gated_delta_rule_chunked(q, k, v, g, beta, state.delta)
                        : reference::gated_delta_rule_recurrent(q, k, v, g, beta, state.delta);
  state.delta = rule.final_state;
  const at::Tensor o = pass.keep(place.probe + "delta", rule.o);

  const at::Tensor z = in.z.unflatten(-1, {shape.value_heads, shape.value_dim});
  const at::Tensor normed = pass.keep(
      place.probe + "norm", reference::rms_norm_gated(o, z, place.weight("norm.weight"), /*groups=*/1, shape.epsilon));
  return pass.keep(place.probe + "out_proj", reference::linear(normed.flatten(-2), place.weight("out_proj.weight")));
}

}  // namespace assay::reference

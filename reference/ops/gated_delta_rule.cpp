#include "reference/ops/gated_delta_rule.hpp"

#include <algorithm>
#include <vector>

#include "reference/ops/segment_sums.hpp"

namespace assay::reference {

namespace {

// [B, L, Hk, dk] -> [B, Hv, L, dk]: neighbouring value heads share a key head.
at::Tensor of_each_value_head(const at::Tensor& x, int64_t value_heads) {
  return x.repeat_interleave(value_heads / x.size(2), 2).transpose(1, 2);
}

at::Tensor state_or_zeros(const at::Tensor& initial_state, const at::Tensor& k, const at::Tensor& v) {
  return initial_state.defined() ? initial_state : at::zeros({v.size(0), v.size(2), k.size(3), v.size(3)}, v.options());
}

}  // namespace

GatedDeltaRule gated_delta_rule_recurrent(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& g, const at::Tensor& beta,
                                          const at::Tensor& initial_state) {
  const at::Tensor queries = of_each_value_head(q, v.size(2)), keys = of_each_value_head(k, v.size(2));
  at::Tensor state = state_or_zeros(initial_state, k, v);
  std::vector<at::Tensor> o;
  for (int64_t t = 0; t < v.size(1); ++t) {
    const at::Tensor q_t = queries.select(2, t).unsqueeze(3), k_t = keys.select(2, t).unsqueeze(3);  // [B, Hv, dk, 1]
    state = at::exp(g.select(1, t)).unsqueeze(2).unsqueeze(3) * state;
    const at::Tensor held = (state * k_t).sum(2);                                   // [B, Hv, dv]
    const at::Tensor e = beta.select(1, t).unsqueeze(2) * (v.select(1, t) - held);  // [B, Hv, dv]
    state = state + k_t * e.unsqueeze(2);
    o.push_back((state * q_t).sum(2));
  }
  return {at::stack(o, 1), state};
}

GatedDeltaRule gated_delta_rule_chunked(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                        const at::Tensor& g, const at::Tensor& beta, const at::Tensor& initial_state,
                                        int64_t chunk_size) {
  const at::Tensor queries = of_each_value_head(q, v.size(2)), keys = of_each_value_head(k, v.size(2));
  const at::Tensor values = v.transpose(1, 2), log_decay = g.transpose(1, 2), rate = beta.transpose(1, 2);
  at::Tensor state = state_or_zeros(initial_state, k, v);
  std::vector<at::Tensor> o;
  for (int64_t first = 0; first < v.size(1); first += chunk_size) {
    const int64_t length = std::min(chunk_size, v.size(1) - first);
    const auto chunk = [&](const at::Tensor& sequence) { return sequence.narrow(2, first, length); };
    const at::Tensor q_c = chunk(queries), k_c = chunk(keys), g_c = chunk(log_decay);  // [B, Hv, Q, dk], [B, Hv, Q]
    const at::Tensor beta_c = chunk(rate).unsqueeze(3);

    const at::Tensor within = segment_sums(g_c);                         // log of the decay from j to i
    const at::Tensor since_start = at::exp(g_c.cumsum(2)).unsqueeze(3);  // from the chunk's start to i, i included
    const at::Tensor to_end = at::exp(within.select(2, length - 1)).unsqueeze(3);  // from j to the chunk's end
    const at::Tensor decay = at::exp(within);

    // e[i] = beta[i] (v[i] - decayed state under k[i]) - beta[i] sum over j < i of decay (k[i] k[j]) e[j]
    const at::Tensor system = (beta_c * at::matmul(k_c, k_c.transpose(2, 3)) * decay).tril(-1);
    const at::Tensor alone = beta_c * (chunk(values) - since_start * at::matmul(k_c, state));
    const at::Tensor e =
        at::linalg_solve_triangular(system, alone, /*upper=*/false, /*left=*/true, /*unitriangular=*/true);

    const at::Tensor scores = (at::matmul(q_c, k_c.transpose(2, 3)) * decay).tril();
    o.push_back((since_start * at::matmul(q_c, state) + at::matmul(scores, e)).transpose(1, 2));
    state = since_start.narrow(2, length - 1, 1) * state + at::matmul((to_end * k_c).transpose(2, 3), e);
  }
  return {at::cat(o, 1), state};
}

}  // namespace assay::reference

#include "reference/ops/ssd.hpp"

#include <algorithm>
#include <vector>

#include "reference/ops/segment_sums.hpp"

namespace assay::reference {

namespace {

// [B, L, G, N] -> [B, L, Nh, N]: neighbouring heads share a group.
at::Tensor of_each_head(const at::Tensor& grouped, int64_t heads) {
  return grouped.repeat_interleave(heads / grouped.size(2), 2);
}

at::Tensor state_or_zeros(const at::Tensor& initial_state, const at::Tensor& x, int64_t state_size) {
  return initial_state.defined() ? initial_state
                                 : at::zeros({x.size(0), x.size(2), x.size(3), state_size}, x.options());
}

}  // namespace

Ssd ssd_recurrent(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                  const at::Tensor& C, const at::Tensor& D, const at::Tensor& initial_state) {
  const at::Tensor b = of_each_head(B, x.size(2)), c = of_each_head(C, x.size(2));
  at::Tensor state = state_or_zeros(initial_state, x, B.size(3));
  std::vector<at::Tensor> y;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const at::Tensor dt_t = dt.select(1, t);                                    // [B, Nh]
    const at::Tensor decay = at::exp(dt_t * A).unsqueeze(2).unsqueeze(3);       // [B, Nh, 1, 1]
    const at::Tensor dt_x = (dt_t.unsqueeze(2) * x.select(1, t)).unsqueeze(3);  // [B, Nh, P, 1]
    state = decay * state + dt_x * b.select(1, t).unsqueeze(2);                 // [B, Nh, P, N]
    y.push_back((state * c.select(1, t).unsqueeze(2)).sum(3));
  }
  return {at::stack(y, 1) + D.unsqueeze(1) * x, state};
}

Ssd ssd_chunked(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                const at::Tensor& C, const at::Tensor& D, int64_t chunk_size, const at::Tensor& initial_state) {
  const at::Tensor b = of_each_head(B, x.size(2)), c = of_each_head(C, x.size(2));
  at::Tensor state = state_or_zeros(initial_state, x, B.size(3));
  std::vector<at::Tensor> y;
  for (int64_t first = 0; first < x.size(1); first += chunk_size) {
    const int64_t length = std::min(chunk_size, x.size(1) - first);
    const auto chunk = [&](const at::Tensor& sequence) { return sequence.narrow(1, first, length).transpose(1, 2); };
    const at::Tensor a = chunk(dt * A);                  // [B, Nh, Q]
    const at::Tensor dt_x = chunk(dt.unsqueeze(3) * x);  // [B, Nh, Q, P]
    const at::Tensor b_m = chunk(b), c_m = chunk(c);     // [B, Nh, Q, N]

    const at::Tensor within = reference::segment_sums(a);    // log of the decay from j to i
    const at::Tensor from_start = a.cumsum(2).unsqueeze(3);  // log of the decay from the chunk's start to i, i included
    const at::Tensor to_end = within.select(2, length - 1).unsqueeze(3);  // log of the decay from j to the chunk's end

    const at::Tensor scores = (at::exp(within) * at::matmul(c_m, b_m.transpose(2, 3))).tril();  // [B, Nh, Q, Q]
    const at::Tensor from_inputs = at::matmul(scores, dt_x);
    const at::Tensor from_state = at::exp(from_start) * at::matmul(c_m, state.transpose(2, 3));
    y.push_back((from_inputs + from_state).transpose(1, 2));

    const at::Tensor contribution = at::matmul((at::exp(to_end) * dt_x).transpose(2, 3), b_m);  // [B, Nh, P, N]
    state = at::exp(from_start.narrow(2, length - 1, 1)) * state + contribution;
  }
  return {at::cat(y, 1) + D.unsqueeze(1) * x, state};
}

}  // namespace assay::reference

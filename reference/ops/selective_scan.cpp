#include "reference/ops/selective_scan.hpp"

#include <vector>

namespace assay::reference {

SelectiveScan selective_scan(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                             const at::Tensor& C, const at::Tensor& D, const at::Tensor& initial_state) {
  const int64_t rows = x.size(0), length = x.size(1), channels = x.size(2), state_size = A.size(1);
  at::Tensor h = initial_state.defined() ? initial_state : at::zeros({rows, channels, state_size}, x.options());
  std::vector<at::Tensor> y;
  for (int64_t t = 0; t < length; ++t) {
    const at::Tensor x_t = x.select(1, t).unsqueeze(2);    // [B, I, 1]
    const at::Tensor dt_t = dt.select(1, t).unsqueeze(2);  // [B, I, 1]
    const at::Tensor b_t = B.select(1, t).unsqueeze(1);    // [B, 1, N]
    const at::Tensor c_t = C.select(1, t).unsqueeze(1);    // [B, 1, N]
    h = at::exp(dt_t * A) * h + dt_t * b_t * x_t;
    y.push_back((h * c_t).sum(2));
  }
  return {at::stack(y, 1) + D * x, h};
}

}  // namespace assay::reference

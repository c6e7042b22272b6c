// Inputs for tests: uniform values from a seed, and the largest difference of two tensors.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace assay::reference {

// float64, uniform in [lo, hi)
inline at::Tensor values(const std::vector<int64_t>& shape, uint32_t seed, double lo = -1, double hi = 1) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  std::mt19937 engine(seed);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.data_ptr<double>()[i] = lo + (hi - lo) * (static_cast<double>(engine()) / 4294967296.0);
  return tensor;
}

// infinity where the shapes differ; a NaN in either counts as infinity
inline double difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  const double largest = (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

inline double element(const at::Tensor& tensor, const std::vector<int64_t>& index) {
  at::Tensor part = tensor;
  for (const int64_t i : index) part = part.select(0, i);
  return part.to(at::kDouble).item<double>();
}

}  // namespace assay::reference

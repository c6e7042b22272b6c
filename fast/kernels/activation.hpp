// Activations of feed-forward parts and experts, float32, the same on host and device.
//
//     silu(x) = x / (1 + e^-x);  gelu(x) = x (1 + erf(x / sqrt 2)) / 2;  relu2(x) = max(x, 0)^2
//
// source  models.md 1.3
// twin    reference/ops/activations.hpp
#pragma once

#include <cmath>

#include "fast/kernels/math.hpp"

namespace assay::fast {

enum class ActivationKind { kSilu, kGelu, kRelu2 };

template <ActivationKind kKind>
__host__ __device__ inline float activate(float x) {
  if constexpr (kKind == ActivationKind::kSilu) {
    return silu(x);
  } else if constexpr (kKind == ActivationKind::kGelu) {
    return 0.5f * x * (1.0f + erff(x * 0.707106781f));
  } else {
    // Compared, not fmaxf, which would turn NaN into 0.
    const float positive = x < 0.0f ? 0.0f : x;
    return positive * positive;
  }
}

// run is called with the kernel template's argument: run.template operator()<kind>().
template <typename Run>
void with_activation(ActivationKind kind, Run run) {
  switch (kind) {
    case ActivationKind::kSilu:
      return run.template operator()<ActivationKind::kSilu>();
    case ActivationKind::kGelu:
      return run.template operator()<ActivationKind::kGelu>();
    case ActivationKind::kRelu2:
      return run.template operator()<ActivationKind::kRelu2>();
  }
}

}  // namespace assay::fast

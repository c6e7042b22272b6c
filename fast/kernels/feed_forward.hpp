// feed_forward: the activation between the projections of a dense feed-forward part.
//
//     y = act(multiplier * gate) * up;   y = act(multiplier * gate) where up is null
//
// in   gate  [T, F]   row t at t * gate_stride; a slice of a fused projection, say
//      up    [T, F]   up_stride likewise; null: an ungated part, whose one projection is `gate`
// out  y     [T, F]   dense; may alias gate or up where that is dense too
//
// cost      3 T F sizeof(T) bytes, without up 2 T F sizeof(T)
// numerics  float32; activations as in activation.hpp
// source    models.md B9
// twin      reference/blocks/feed_forward.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/activation.hpp"
#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

template <typename T>
struct FeedForwardParams {
  const T* gate = nullptr;
  int64_t gate_stride = 0;
  const T* up = nullptr;
  int64_t up_stride = 0;
  T* y = nullptr;
  int64_t rows = 0;   // T
  int64_t width = 0;  // F
  float multiplier = 1;
  ActivationKind activation = ActivationKind::kSilu;
};

template <typename T>
void feed_forward(const FeedForwardParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view feed_forward_id(const FeedForwardParams<T>&) {
  return kernel_id<"feed_forward_activation", T>;
}

}  // namespace assay::fast

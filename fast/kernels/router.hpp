// router: which experts a token goes to, and with which weights.
//
//     softmax_top_k   p = softmax over all E;  the k largest p;  weight = p
//     top_k_softmax   the k largest logits;    weight = softmax over those
//     sigmoid         s = sigmoid(logit);  the k largest s + bias;  weight = s
//                     with groups > 1 only experts of the chosen_groups best blocks of E / groups neighbours stay in
//                     the choice, the others as minus infinity; a block counts as the sum of its two largest s + bias
//     then, if normalises, weight / (sum of the k + epsilon), and times scaling
//
// in   logits   [T, E]   row t at t * stride
//      bias     [E]      float32; sigmoid only; null: none
// out  experts  int32 [T, k]    the chosen in descending order; ties go to the lower index, NaN counts as the largest
//      weights  float32 [T, k]
//      dense    float32 [T, E]  the weight of each expert, 0 where it is not chosen; null: not written
//
// requires  1 <= k <= E <= 1024, k <= 64; groups divides E; chosen_groups * (E / groups) >= k
// cost      (E sizeof(T) + 8 k) T bytes, with dense 4 T E more
// numerics  float32, sums in a fixed order (a lane's, then a butterfly), expf; one warp a token, its scores in
// registers.
//           softmax_top_k chooses by the logits, whose order is that of p before p is rounded
// source    models.md B10
// twin      reference/ops/router.hpp
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string_view>

#include "fast/kernels/kernel_id.hpp"

namespace assay::fast {

enum class RouterKind { kSoftmaxTopK, kTopKSoftmax, kSigmoid };

template <typename T>
struct RouterParams {
  const T* logits = nullptr;
  int64_t stride = 0;
  const float* bias = nullptr;
  int32_t* experts = nullptr;
  float* weights = nullptr;
  float* dense = nullptr;
  int64_t tokens = 0;  // T
  int64_t count = 0;   // E
  int64_t chosen = 0;  // k
  RouterKind kind = RouterKind::kSoftmaxTopK;
  bool normalises = false;
  float epsilon = 0;
  float scaling = 1;
  int64_t groups = 1;
  int64_t chosen_groups = 1;
};

template <typename T>
void router(const RouterParams<T>& p, cudaStream_t stream);

template <typename T>
constexpr std::string_view router_id(const RouterParams<T>&) {
  return kernel_id<"router_top_k", T>;
}

}  // namespace assay::fast

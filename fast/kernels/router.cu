#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/order_key.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/router.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kMostExperts = 1024;
constexpr int kMostChosen = 64;
constexpr int kWarps = 2;  // of a block, a token each
constexpr int kThreads = kWarps * kWarp;

constexpr uint32_t kTaken = 0;  // taken, or not in the choice: below the key of every value

// The place of the largest of keys[0 .. count), the lowest such place, in all lanes.
__device__ inline int largest(const uint32_t* keys, int count) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  uint32_t best = 0;
  int place = count;
  for (int i = lane; i < count; i += kWarp) {
    if (place == count || keys[i] > best) {
      best = keys[i];
      place = i;
    }
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const uint32_t other = __shfl_xor_sync(kFullWarp, best, offset);
    const int other_place = __shfl_xor_sync(kFullWarp, place, offset);
    if (other > best || (other == best && other_place < place)) {
      best = other;
      place = other_place;
    }
  }
  return place;
}

// Takes out of the choice what is not in one of the best groups. group_keys: scratch of `groups`.
__device__ inline void keep_best_groups(uint32_t* keys, uint32_t* group_keys, int count, int groups, int kept) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int size = count / groups;
  for (int g = lane; g < groups; g += kWarp) {
    uint32_t first = 0, second = 0;
    for (int i = g * size; i < (g + 1) * size; ++i) {
      if (keys[i] > first) {
        second = first;
        first = keys[i];
      } else if (keys[i] > second) {
        second = keys[i];
      }
    }
    group_keys[g] = order_key(size > 1 ? from_order_key(first) + from_order_key(second) : from_order_key(first));
  }
  __syncwarp();
  for (int i = 0; i < kept; ++i) {
    const int best = largest(group_keys, groups);
    __syncwarp();
    if (lane == 0) group_keys[best] = kTaken;
    __syncwarp();
  }
  for (int i = lane; i < count; i += kWarp) {
    if (group_keys[i / size] != kTaken) keys[i] = order_key(-__builtin_inff());
  }
  __syncwarp();
}

template <typename T>
__global__ void __launch_bounds__(kThreads) router_kernel(RouterParams<T> p) {
  __shared__ uint32_t all_keys[kWarps][kMostExperts], all_group_keys[kWarps][kMostExperts];
  __shared__ float all_scores[kWarps][kMostExperts];
  __shared__ float all_weights[kWarps][kMostChosen];
  __shared__ int all_places[kWarps][kMostChosen];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  uint32_t* keys = all_keys[warp];
  float* scores = all_scores[warp];
  float* weights = all_weights[warp];
  int* places = all_places[warp];
  const int count = static_cast<int>(p.count), chosen = static_cast<int>(p.chosen);

  for (int64_t token = static_cast<int64_t>(blockIdx.x) * kWarps + warp; token < p.tokens;
       token += static_cast<int64_t>(gridDim.x) * kWarps) {
    const T* logits = p.logits + token * p.stride;
    float most = -__builtin_inff();
    for (int e = lane; e < count; e += kWarp) {
      const float logit = to_float(logits[e]);
      scores[e] = p.kind == RouterKind::kSigmoid ? sigmoid(logit) : logit;
      most = logit > most ? logit : most;
    }
    if (p.kind == RouterKind::kSoftmaxTopK) {
#pragma unroll
      for (int offset = kWarp / 2; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(kFullWarp, most, offset);
        most = other > most ? other : most;
      }
      float sum = 0;
      for (int e = lane; e < count; e += kWarp) {
        scores[e] = expf(scores[e] - most);
        sum += scores[e];
      }
      sum = sum_lanes<kWarp>(sum);
      for (int e = lane; e < count; e += kWarp) scores[e] /= sum;
    }
    for (int e = lane; e < count; e += kWarp)
      keys[e] = order_key(p.bias == nullptr ? scores[e] : scores[e] + p.bias[e]);
    __syncwarp();
    if (p.groups > 1) {
      keep_best_groups(keys, all_group_keys[warp], count, static_cast<int>(p.groups),
                       static_cast<int>(p.chosen_groups));
    }
    for (int i = 0; i < chosen; ++i) {
      const int place = largest(keys, count);
      __syncwarp();
      if (lane == 0) {
        keys[place] = kTaken;
        places[i] = place;
        weights[i] = scores[place];
      }
      __syncwarp();
    }

    // A few values: every lane sums them in the same order.
    if (p.kind == RouterKind::kTopKSoftmax) {
      const float largest_logit = weights[0];
      __syncwarp();
      for (int i = lane; i < chosen; i += kWarp) weights[i] = expf(weights[i] - largest_logit);
      __syncwarp();
      float sum = 0;
      for (int i = 0; i < chosen; ++i) sum += weights[i];
      __syncwarp();
      for (int i = lane; i < chosen; i += kWarp) weights[i] /= sum;
      __syncwarp();
    }
    float divisor = 1;
    if (p.normalises) {
      float sum = 0;
      for (int i = 0; i < chosen; ++i) sum += weights[i];
      divisor = sum + p.epsilon;
    }
    float* dense = p.dense == nullptr ? nullptr : p.dense + token * p.count;
    if (dense != nullptr) {
      for (int e = lane; e < count; e += kWarp) dense[e] = 0;
    }
    __syncwarp();
    for (int i = lane; i < chosen; i += kWarp) {
      const float weight = weights[i] / divisor * p.scaling;
      p.experts[token * p.chosen + i] = places[i];
      p.weights[token * p.chosen + i] = weight;
      if (dense != nullptr) dense[places[i]] = weight;
    }
    __syncwarp();
  }
}

}  // namespace

template <typename T>
void router(const RouterParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "router";
  require_pointer(kName, "logits", p.logits);
  require_pointer(kName, "experts", p.experts);
  require_pointer(kName, "weights", p.weights);
  require_range(kName, "tokens", p.tokens, 1, kAnySize);
  require_range(kName, "count", p.count, 1, kMostExperts);
  require_range(kName, "chosen", p.chosen, 1, p.count < kMostChosen ? p.count : kMostChosen);
  require_stride(kName, "stride", p.stride, p.count);
  require_divides(kName, "groups", p.groups, "count", p.count);
  require_range(kName, "chosen_groups", p.chosen_groups, 1, p.groups);
  require_range(kName, "chosen_groups * (count / groups)", p.chosen_groups * (p.count / p.groups), p.chosen, p.count);
  if (p.kind != RouterKind::kSigmoid) {
    require_range(kName, "groups", p.groups, 1, 1);
    if (p.bias != nullptr) throw InputError(kName, "bias is given, which only the sigmoid router takes");
  }
  launch(kName, router_kernel<T>, ceil_div(p.tokens, kWarps), kThreads, stream, p);
}

template void router<float>(const RouterParams<float>&, cudaStream_t);

}  // namespace assay::fast

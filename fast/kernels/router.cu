#include "fast/kernels/candidate.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/router.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kMostExperts = 1024;
constexpr int kMostChosen = 64;
constexpr int kWarps = 4;  // of a block, a token each
constexpr int kThreads = kWarps * kWarp;

constexpr uint32_t kTaken = 0;  // taken, or not in the choice: below the key of every value

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
    Candidate best = 0;
    for (int g = lane; g < groups; g += kWarp) best = larger(best, candidate_of_key(group_keys[g], g));
    best = largest_of_warp(best);
    __syncwarp();
    if (lane == 0) group_keys[place_of(best)] = kTaken;
    __syncwarp();
  }
  for (int i = lane; i < count; i += kWarp) {
    if (group_keys[i / size] != kTaken) keys[i] = order_key(-__builtin_inff());
  }
  __syncwarp();
}

// best[0 .. chosen): the largest in descending order, a lane having place lane + kWarp j in keys[j].
// Lanes' maxima give a bound that `chosen` places or more reach and few others: those are listed and ranked.
template <int kOwn>
__device__ inline void choose(uint32_t (&keys)[kOwn], int chosen, Candidate* best, Candidate* listed) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (chosen <= kWarp) {
    uint32_t most = 0, bound = 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) most = max(most, keys[j]);
#pragma unroll 1
    for (int i = 0; i < chosen; ++i) {
      bound = __reduce_max_sync(kFullWarp, most);
      if (most == bound) most = 0;
    }
    bound = max(bound, kTaken + 1);
    int own = 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) own += keys[j] >= bound ? 1 : 0;
    int end = own;
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int before = __shfl_up_sync(kFullWarp, end, offset);
      if (lane >= offset) end += before;
    }
    const int count = __shfl_sync(kFullWarp, end, kWarp - 1);
    if (count <= kWarp) {
      Candidate* to = listed + (end - own);
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        if (keys[j] >= bound) *to++ = candidate_of_key(keys[j], lane + j * kWarp);
      }
      __syncwarp();
      const Candidate value = lane < count ? listed[lane] : 0;
      const int rank = rank_in(listed, count, value);
      if (rank < chosen) best[rank] = value;
      __syncwarp();
      return;
    }
  }
  // Many are alike, or many are chosen: one after another.
  for (int i = 0; i < chosen; ++i) {
    Candidate most = 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j)
      most = larger(most, keys[j] == kTaken ? 0 : candidate_of_key(keys[j], lane + j * kWarp));
    most = largest_of_warp(most);
    const int place = static_cast<int>(place_of(most));
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      if (lane + j * kWarp == place) keys[j] = kTaken;
    }
    if (lane == 0) best[i] = most;
  }
  __syncwarp();
}

// A lane has the experts lane + kWarp j, j < kOwn.
template <typename T, int kOwn, RouterKind kKind, bool kIsGrouped>
__global__ void __launch_bounds__(kThreads) router_kernel(RouterParams<T> p) {
  __shared__ uint32_t all_keys[kIsGrouped ? kWarps : 1][kIsGrouped ? kOwn * kWarp : 1];
  __shared__ uint32_t all_group_keys[kIsGrouped ? kWarps : 1][kIsGrouped ? kOwn * kWarp : 1];
  __shared__ Candidate all_best[kWarps][kMostChosen], all_listed[kWarps][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  Candidate* best = all_best[warp];
  const int own_count = static_cast<int>(p.count) - lane, chosen = static_cast<int>(p.chosen);
  const bool has_bias = kKind == RouterKind::kSigmoid && p.bias != nullptr;

  for (int64_t token = static_cast<int64_t>(blockIdx.x) * kWarps + warp; token < p.tokens;
       token += static_cast<int64_t>(gridDim.x) * kWarps) {
    const T* logits = p.logits + token * p.stride;
    const T* own_logits = logits + lane;
    float scores[kOwn];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) scores[j] = j * kWarp < own_count ? to_float(own_logits[j * kWarp]) : 0;
    if constexpr (kKind == RouterKind::kSigmoid) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) scores[j] = sigmoid(scores[j]);
      if (has_bias) {
        const float* own_bias = p.bias + lane;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) scores[j] += j * kWarp < own_count ? own_bias[j * kWarp] : 0;
      }
    }
    uint32_t keys[kOwn];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) keys[j] = j * kWarp < own_count ? order_key(scores[j]) : kTaken;
    float most = 0, sum = 1;
    if constexpr (kKind == RouterKind::kSoftmaxTopK) {
      uint32_t key = 0;
#pragma unroll
      for (int j = 0; j < kOwn; ++j) key = max(key, keys[j]);
      most = from_order_key(__reduce_max_sync(kFullWarp, key));
      sum = 0;
#pragma unroll
      for (int j = 0; j < kOwn; ++j) sum += j * kWarp < own_count ? expf(scores[j] - most) : 0.0f;
      sum = sum_lanes<kWarp>(sum);
    }
    if constexpr (kIsGrouped) {
      uint32_t* shared_keys = all_keys[warp];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) shared_keys[lane + j * kWarp] = keys[j];
      __syncwarp();
      keep_best_groups(shared_keys, all_group_keys[warp], static_cast<int>(p.count), static_cast<int>(p.groups),
                       static_cast<int>(p.chosen_groups));
#pragma unroll
      for (int j = 0; j < kOwn; ++j) keys[j] = shared_keys[lane + j * kWarp];
      __syncwarp();
    }
    choose(keys, chosen, best, all_listed[warp]);

    float* dense = p.dense == nullptr ? nullptr : p.dense + token * p.count;
    if (dense != nullptr) {
      float* own_dense = dense + lane;
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        if (j * kWarp < own_count) own_dense[j * kWarp] = 0;
      }
    }
    // Softmax keeps the order of the logits. A score is its key unless the key has a bias or a group's mask in it.
    constexpr int kMine = kMostChosen / kWarp;
    int places[kMine];
    float weights[kMine];
    float total = 0;
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      weights[i] = 0;
      if (lane + i * kWarp < chosen) {
        const Candidate own = best[lane + i * kWarp];
        places[i] = static_cast<int>(place_of(own));
        const float score = kIsGrouped || has_bias ? sigmoid(to_float(logits[places[i]])) : value_of(own);
        weights[i] = kKind == RouterKind::kSoftmaxTopK   ? expf(score - most) / sum
                     : kKind == RouterKind::kTopKSoftmax ? expf(score - value_of(best[0]))
                                                         : score;
        total += weights[i];
      }
    }
    if (kKind == RouterKind::kTopKSoftmax || p.normalises) total = sum_lanes<kWarp>(total);
    if constexpr (kKind == RouterKind::kTopKSoftmax) {
      float again = 0;
#pragma unroll
      for (int i = 0; i < kMine; ++i) {
        weights[i] /= total;
        again += weights[i];
      }
      if (p.normalises) total = sum_lanes<kWarp>(again);
    }
    const float divisor = p.normalises ? total + p.epsilon : 1.0f;
    __syncwarp();  // the zeros of the row lie before its weights
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
      if (lane + i * kWarp < chosen) {
        const float weight = weights[i] / divisor * p.scaling;
        p.experts[token * p.chosen + lane + i * kWarp] = places[i];
        p.weights[token * p.chosen + lane + i * kWarp] = weight;
        if (dense != nullptr) dense[places[i]] = weight;
      }
    }
  }
}

template <typename T, int kOwn>
auto kernel_of(const RouterParams<T>& p) {
  using enum RouterKind;
  return p.kind == kSoftmaxTopK   ? router_kernel<T, kOwn, kSoftmaxTopK, false>
         : p.kind == kTopKSoftmax ? router_kernel<T, kOwn, kTopKSoftmax, false>
         : p.groups == 1          ? router_kernel<T, kOwn, kSigmoid, false>
                                  : router_kernel<T, kOwn, kSigmoid, true>;
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
  launch(kName,
         p.count <= 128   ? kernel_of<T, 4>(p)
         : p.count <= 256 ? kernel_of<T, 8>(p)
         : p.count <= 512 ? kernel_of<T, 16>(p)
                          : kernel_of<T, 32>(p),
         ceil_div(p.tokens, kWarps), kThreads, stream, p);
}

template void router<float>(const RouterParams<float>&, cudaStream_t);

}  // namespace assay::fast

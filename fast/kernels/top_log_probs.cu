#include "fast/kernels/candidate.cuh"
#include "fast/kernels/dependent_launch.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_parts.cuh"
#include "fast/kernels/storage.cuh"
#include "fast/kernels/top_log_probs.hpp"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int kOwn = 32;  // logits of a thread
constexpr int64_t kMostChosen = 1024;
constexpr int kMostListed = 512;
constexpr float kInfinity = __builtin_inff();

// Of each part of a row [rows, count]; the candidates with k of each behind that, 0 where a part has fewer.
struct Parts {
  RowParts cut;
  Candidate* candidates;
  float* most;
  float* sum;
};

template <typename T>
Parts lay_out(const TopLogProbsParams<T>& p) {
  Parts parts{row_parts(p.width, int64_t{kThreads} * kOwn), static_cast<Candidate*>(p.workspace), nullptr, nullptr};
  if (p.workspace != nullptr) {
    parts.most = reinterpret_cast<float*>(parts.candidates + p.rows * parts.cut.count * p.chosen);
    parts.sum = parts.most + p.rows * parts.cut.count;
  }
  return parts;
}

// e^x of a difference to a maximum, by the ex2 of the hardware. What it and its argument's rounding are off by is far
// below the rounding of the results, and differs from term to term.
__device__ inline float exp_below(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}

// The maximum that is taken from others, so that the exponential of -inf is 0.
__device__ inline float finite_or_zero(float most) { return most == -kInfinity ? 0.0f : most; }

// The largest over a warp, in all of its lanes. A NaN may be passed over.
__device__ inline float max_of_warp(float value) {
  return from_order_key(__reduce_max_sync(kFullWarp, order_key(value)));
}

struct Shortlist {
  Candidate bounds[kWarps], listed[kMostListed];
  int count;
};

// put(rank, candidate) for the block's `chosen` largest, or for all if there are fewer. best: the thread's largest, 0
// if it has none. visit(bound, take) calls take for each candidate of the thread that is not below bound. The warps'
// own bounds give one that `chosen` or more reach and few others: those are listed and ranked.
template <typename Visit, typename Put>
__device__ inline void choose(Candidate best, int chosen, Shortlist& shared, Visit visit, Put put) {
  const int share = (chosen + kWarps - 1) / kWarps;
  if (share <= kWarp) {
    Candidate rest = best, bound = 0;
#pragma unroll 1
    for (int i = 0; i < share; ++i) {
      bound = largest_of_warp(rest);
      if (rest == bound) rest = 0;
    }
    if (threadIdx.x % kWarp == 0) shared.bounds[threadIdx.x / kWarp] = bound;
    if (threadIdx.x == 0) shared.count = 0;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < kWarps; ++w) bound = min(bound, shared.bounds[w]);
    if (best >= bound) {
      visit(bound, [&](Candidate candidate) {
        const int at = atomicAdd(&shared.count, 1);
        if (at < kMostListed) shared.listed[at] = candidate;
      });
    }
    __syncthreads();
    const int count = shared.count;
    if (count <= kMostListed) {
      for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
        const Candidate own = shared.listed[i];
        const int rank = rank_in(shared.listed, count, own);
        if (rank < chosen) put(rank, own);
      }
      return;
    }
  }
  // Many are chosen, or many alike: one after another.
  for (int rank = 0; rank < chosen; ++rank) {
    const Candidate most = largest_of_block<kThreads>(best, shared.bounds);
    if (most == 0) return;
    if (threadIdx.x == 0) put(rank, most);
    if (best == most) {
      best = 0;
      visit(0, [&](Candidate candidate) { best = larger(best, candidate < most ? candidate : 0); });
    }
  }
}

template <typename T, bool kIsPacked>
__global__ void __launch_bounds__(kThreads, 5) top_log_probs_part_kernel(TopLogProbsParams<T> p, Parts parts) {
  constexpr int kWidth = kPackWidth<T>, kPacks = kOwn / kWidth;
  __shared__ Shortlist shortlist;
  __shared__ float warp_most[kWarps], warp_sum[kWarps];
  let_dependents_start();
  const int thread = static_cast<int>(threadIdx.x);
  const auto place = [&](int at) { return (thread + at / kWidth * kThreads) * kWidth + at % kWidth; };
  for (int64_t item = blockIdx.x; item < p.rows * parts.cut.count; item += gridDim.x) {
    const RowPart part = row_part(parts.cut, p.width, item);
    const T* x = p.x + part.row * p.x_stride + part.first;
    float own[kPacks][kWidth];
#pragma unroll
    for (int j = 0; j < kPacks; ++j) load_logits<kWidth, kIsPacked>(x, part.size, place(j * kWidth), own[j]);
    const auto visit = [&](Candidate bound, auto take) {
      // Of bound 0 a NaN, which nothing is below.
      const float least = value_of(bound);
      unsigned reached = 0;
#pragma unroll
      for (int at = 0; at < kOwn; ++at) reached |= own[at / kWidth][at % kWidth] < least ? 0u : 1u << at;
      for (; reached != 0; reached &= reached - 1) {
        const int there = place(__ffs(static_cast<int>(reached)) - 1);
        if (there >= part.size) return;
        const Candidate candidate = make_candidate(to_float(x[there]), part.first + there);
        if (candidate >= bound) take(candidate);
      }
    };

    float most = -kInfinity;
#pragma unroll
    for (int at = 0; at < kOwn; ++at) most = fmaxf(most, own[at / kWidth][at % kWidth]);
    const float shift = finite_or_zero(most);
    float sums[kWidth] = {};
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sums[i] += exp_below(own[j][i] - shift);
    }
#pragma unroll
    for (int half = kWidth / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    float sum = sums[0];

    Candidate best = 0;
    if (sum != sum) {  // NaN is the largest, and fmaxf passes it over
      visit(0, [&](Candidate candidate) { best = larger(best, candidate); });
    } else if (place(0) < part.size) {
      int at = 0;
#pragma unroll
      for (int i = kOwn - 1; i >= 0; --i) at = own[i / kWidth][i % kWidth] == most ? i : at;
      best = make_candidate(most, part.first + place(at));
    }

    const float most_of_warp = max_of_warp(most);
    sum = sum_lanes<kWarp>(sum * precise_exp(most - finite_or_zero(most_of_warp)));
    if (thread % kWarp == 0) {
      warp_most[thread / kWarp] = most_of_warp;
      warp_sum[thread / kWarp] = sum;
    }
    Candidate* out = parts.candidates + item * p.chosen;
    for (int64_t rank = part.size + thread; rank < p.chosen; rank += kThreads) out[rank] = 0;
    choose(best, static_cast<int>(p.chosen), shortlist, visit,
           [&](int rank, Candidate candidate) { out[rank] = candidate; });
    if (thread == 0) {
      float most_of_part = -kInfinity, sum_of_part = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) most_of_part = fmaxf(most_of_part, warp_most[w]);
#pragma unroll
      for (int w = 0; w < kWarps; ++w)
        sum_of_part = fmaf(warp_sum[w], precise_exp(warp_most[w] - finite_or_zero(most_of_part)), sum_of_part);
      parts.most[item] = most_of_part;
      parts.sum[item] = sum_of_part;
    }
    __syncthreads();  // shared memory has been read
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) top_log_probs_combine_kernel(TopLogProbsParams<T> p, Parts parts) {
  __shared__ Shortlist shortlist;
  wait_for_earlier();
  const int64_t count = parts.cut.count * p.chosen;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const Candidate* candidates = parts.candidates + row * count;
    Candidate best = 0;
    for (int64_t i = threadIdx.x; i < count; i += kThreads) best = larger(best, candidates[i]);
    // Every warp the same.
    const float* mosts = parts.most + row * parts.cut.count;
    const float* sums = parts.sum + row * parts.cut.count;
    float most = -kInfinity;
    for (int64_t i = lane; i < parts.cut.count; i += kWarp) most = fmaxf(most, mosts[i]);
    most = max_of_warp(most);
    float sum = 0;
    for (int64_t i = lane; i < parts.cut.count; i += kWarp) {
      const float fade = precise_exp(mosts[i] - most);
      sum = fmaf(sums[i], fade, sum);
    }
    const float log_sum = logf(sum_lanes<kWarp>(sum));
    choose(
        best, static_cast<int>(p.chosen), shortlist,
        [&](Candidate bound, auto take) {
          for (int64_t i = threadIdx.x; i < count; i += kThreads) {
            const Candidate candidate = candidates[i];
            if (candidate >= bound && candidate != 0) take(candidate);
          }
        },
        [&](int rank, Candidate candidate) {
          p.values[row * p.chosen + rank] = (value_of(candidate) - most) - log_sum;
          p.ids[row * p.chosen + rank] = place_of(candidate);
        });
    __syncthreads();  // shared memory has been read
  }
}

template <typename T>
void require_sizes(const TopLogProbsParams<T>& p) {
  constexpr const char* kName = "top_log_probs";
  require_range(kName, "rows", p.rows, 1, kAnySize);
  require_range(kName, "width", p.width, 1, int64_t{UINT32_MAX});
  require_range(kName, "chosen", p.chosen, 1, p.width < kMostChosen ? p.width : kMostChosen);
}

}  // namespace

template <typename T>
size_t top_log_probs_workspace_bytes(const TopLogProbsParams<T>& p) {
  require_sizes(p);
  const int64_t parts = p.rows * lay_out(p).cut.count;
  return static_cast<size_t>(parts) * (static_cast<size_t>(p.chosen) * sizeof(Candidate) + 2 * sizeof(float));
}

template <typename T>
void top_log_probs(const TopLogProbsParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "top_log_probs";
  require_sizes(p);
  require_pointer(kName, "x", p.x);
  require_pointer(kName, "values", p.values);
  require_pointer(kName, "ids", p.ids);
  require_pointer(kName, "workspace", p.workspace);
  require_stride(kName, "x_stride", p.x_stride, p.width);
  const Parts parts = lay_out(p);
  const bool is_packed = is_packable<kPackWidth<T>, T>({p.x}, {p.width, p.x_stride});
  launch(kName, is_packed ? top_log_probs_part_kernel<T, true> : top_log_probs_part_kernel<T, false>,
         p.rows * parts.cut.count, kThreads, stream, p, parts);
  launch_dependent(kName, top_log_probs_combine_kernel<T>, p.rows, kThreads, stream, p, parts);
}

template size_t top_log_probs_workspace_bytes<float>(const TopLogProbsParams<float>&);
template void top_log_probs<float>(const TopLogProbsParams<float>&, cudaStream_t);

}  // namespace assay::fast

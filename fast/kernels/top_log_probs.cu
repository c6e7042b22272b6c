#include "fast/kernels/candidate.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"
#include "fast/kernels/top_log_probs.hpp"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;
constexpr int kOwn = 32;  // logits of a thread
constexpr int64_t kPart = int64_t{kThreads} * kOwn;
constexpr int64_t kMostChosen = 1024;

// Of each part of a row [rows, parts]; the candidates with k of each behind that, 0 where a part has fewer.
struct Parts {
  Candidate* candidates;
  float* most;
  float* sum;
  int64_t count;  // of one row
};

template <typename T>
Parts lay_out(const TopLogProbsParams<T>& p) {
  Parts parts{static_cast<Candidate*>(p.workspace), nullptr, nullptr, ceil_div(p.width, kPart)};
  if (p.workspace != nullptr) {
    parts.most = reinterpret_cast<float*>(parts.candidates + p.rows * parts.count * p.chosen);
    parts.sum = parts.most + p.rows * parts.count;
  }
  return parts;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) top_log_probs_part_kernel(TopLogProbsParams<T> p, Parts parts) {
  __shared__ Candidate partial[kThreads / kWarp];
  __shared__ float partial_sum[kWarp];
  for (int64_t item = blockIdx.x; item < p.rows * parts.count; item += gridDim.x) {
    const int64_t row = item / parts.count, first = (item - row * parts.count) * kPart + threadIdx.x;
    Candidate own[kOwn];
    Candidate best = 0;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int64_t i = first + j * kThreads;
      own[j] = i < p.width ? make_candidate(to_float(p.x[row * p.x_stride + i]), i) : 0;
      best = larger(best, own[j]);
    }
    Candidate chosen = largest_of_block<kThreads>(best, partial);
    const float most = value_of(chosen);
    // All -inf: nothing to add to the row's sum, where -inf less -inf would be NaN.
    float sum = 0;
    if (most != -__builtin_inff()) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) sum += own[j] == 0 ? 0.0f : precise_exp(value_of(own[j]) - most);
    }
    sum = sum_block(sum, partial_sum);
    if (threadIdx.x == 0) {
      parts.most[item] = most;
      parts.sum[item] = sum;
    }
    Candidate* out = parts.candidates + item * p.chosen;
    for (int64_t rank = 0; rank < p.chosen; ++rank) {
      if (threadIdx.x == 0) out[rank] = chosen;
      // The thread that had it looks for its next; candidates are unlike each other.
      if (best == chosen) {
        best = 0;
#pragma unroll
        for (int j = 0; j < kOwn; ++j) best = larger(best, own[j] < chosen ? own[j] : 0);
      }
      if (rank + 1 < p.chosen) chosen = largest_of_block<kThreads>(best, partial);
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) top_log_probs_combine_kernel(TopLogProbsParams<T> p, Parts parts) {
  __shared__ Candidate partial[kThreads / kWarp];
  __shared__ float partial_sum[kWarp];
  const int64_t count = parts.count * p.chosen;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    const Candidate* candidates = parts.candidates + row * count;
    // A thread's largest that is below `bound`.
    const auto largest_below = [&](Candidate bound) {
      Candidate best = 0;
      for (int64_t i = threadIdx.x; i < count; i += kThreads)
        best = larger(best, candidates[i] < bound ? candidates[i] : 0);
      return best;
    };
    Candidate best = largest_below(~Candidate{0});
    Candidate chosen = largest_of_block<kThreads>(best, partial);
    const float most = value_of(chosen);
    float sum = 0;
    for (int64_t i = threadIdx.x; i < parts.count; i += kThreads) {
      const float fade = precise_exp(parts.most[row * parts.count + i] - most);
      sum = fmaf(parts.sum[row * parts.count + i], fade, sum);
    }
    const float log_sum = logf(sum_block(sum, partial_sum));
    for (int64_t rank = 0; rank < p.chosen; ++rank) {
      if (threadIdx.x == 0) {
        p.values[row * p.chosen + rank] = (value_of(chosen) - most) - log_sum;
        p.ids[row * p.chosen + rank] = place_of(chosen);
      }
      if (best == chosen) best = largest_below(chosen);
      if (rank + 1 < p.chosen) chosen = largest_of_block<kThreads>(best, partial);
    }
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
  const int64_t parts = p.rows * ceil_div(p.width, kPart);
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
  launch(kName, top_log_probs_part_kernel<T>, p.rows * parts.count, kThreads, stream, p, parts);
  launch(kName, top_log_probs_combine_kernel<T>, p.rows, kThreads, stream, p, parts);
}

template size_t top_log_probs_workspace_bytes<float>(const TopLogProbsParams<float>&);
template void top_log_probs<float>(const TopLogProbsParams<float>&, cudaStream_t);

}  // namespace assay::fast

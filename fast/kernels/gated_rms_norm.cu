#include "fast/kernels/gated_rms_norm.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/quotient.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_tile.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreadsOfTeams = 128;

enum class Gate { kFirst, kLast };

// u: what is normed, x gated first or plain. Both tiles are in flight together.
template <Gate kGate, int kPacks, int kWidth, typename T>
__device__ inline void load_gated(const T* x, const T* z, int64_t packs, int thread, int team,
                                  float (&u)[kPacks][kWidth], float (&gate)[kPacks][kWidth]) {
  load_tile(x, packs, thread, team, u);
  load_tile(z, packs, thread, team, gate);
  if constexpr (kGate == Gate::kFirst) {
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) u[k][i] *= silu(gate[k][i]);
    }
  }
}

// An item is a (row, group): kTeam lanes', or a block's where kTeam is 0. The last tile of an item, which is all of it
// up to 4096 accesses, is read once.
template <typename T, int kWidth, int kPacks, Gate kGate, int kTeam>
__global__ void __launch_bounds__(kTeam == 0 ? kMaxRowThreads : kThreadsOfTeams)
    gated_rms_norm_kernel(GatedRmsNormParams<T> p) {
  __shared__ float partial[kWarp];
  const int64_t group_width = p.width / p.groups;
  const int64_t packs = group_width / kWidth, items = p.rows * p.groups;
  const int team = kTeam == 0 ? static_cast<int>(blockDim.x) : kTeam;
  const int thread = kTeam == 0 ? static_cast<int>(threadIdx.x) : static_cast<int>(threadIdx.x) % kTeam;
  constexpr int kTeams = kTeam == 0 ? 1 : kThreadsOfTeams / (kTeam == 0 ? 1 : kTeam);
  const int team_of_block = kTeam == 0 ? 0 : static_cast<int>(threadIdx.x) / (kTeam == 0 ? 1 : kTeam);
  const int64_t step = static_cast<int64_t>(team) * kPacks;
  // Whole warps stay in the loop; a team past the end has no packs.
  for (int64_t first_item = static_cast<int64_t>(blockIdx.x) * kTeams; first_item < items;
       first_item += static_cast<int64_t>(gridDim.x) * kTeams) {
    const int64_t item = first_item + team_of_block;
    const int64_t end = item < items ? packs : 0;
    const int64_t row = quotient(item, p.groups);
    const int64_t start = (item - row * p.groups) * group_width;
    const T* x = p.x + row * p.width + start;
    const T* z = p.z + row * p.z_stride + start;
    const T* weights = p.weight + (p.is_weight_shared ? 0 : start);
    T* y = p.y + row * p.width + start;

    float u[kPacks][kWidth], gate[kPacks][kWidth];
    float squares = 0;
    int64_t first = 0;
    for (;; first += step) {
      load_gated<kGate>(x + first * kWidth, z + first * kWidth, end - first, thread, team, u, gate);
      squares += sum_squares(u);
      if (first + step >= packs) break;
    }
    const float sum = kTeam == 0 ? sum_block(squares, partial) : sum_lanes < kTeam == 0 ? kWarp : kTeam > (squares);
    const float scale = 1.0f / sqrtf(sum / static_cast<float>(group_width) + p.epsilon);
    for (;;) {
      float weight[kPacks][kWidth];
      load_tile(weights + first * kWidth, end - first, thread, team, weight);
#pragma unroll
      for (int k = 0; k < kPacks; ++k) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          weight[k][i] *= u[k][i] * scale;
          if constexpr (kGate == Gate::kLast) weight[k][i] *= silu(gate[k][i]);
        }
      }
      store_tile(y + first * kWidth, end - first, thread, team, weight);
      if (first == 0) break;
      first -= step;
      load_gated<kGate>(x + first * kWidth, z + first * kWidth, end - first, thread, team, u, gate);
    }
  }
}

template <typename T, int kWidth, int kPacks, Gate kGate, int kTeam>
void start(const char* name, const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  const int64_t items = p.rows * p.groups;
  if constexpr (kTeam == 0) {
    launch(name, gated_rms_norm_kernel<T, kWidth, kPacks, kGate, 0>, items,
           row_threads<kPacks>(p.width / p.groups / kWidth), stream, p);
  } else {
    launch(name, gated_rms_norm_kernel<T, kWidth, kPacks, kGate, kTeam>, ceil_div(items, kThreadsOfTeams / kTeam),
           kThreadsOfTeams, stream, p);
  }
}

template <Gate kGate, typename T>
void check_and_start(const char* name, const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "z", p.z);
  require_pointer(name, "weight", p.weight);
  require_pointer(name, "y", p.y);
  require_range(name, "rows", p.rows, 1, kAnySize);
  require_range(name, "width", p.width, 1, kAnySize);
  require_divides(name, "groups", p.groups, "width", p.width);
  require_stride(name, "z_stride", p.z_stride, p.width);
  constexpr int kWidth = kPackWidth<T>;
  const int64_t packs = p.width / p.groups / kWidth;
  const bool is_packed = is_packable<kWidth, T>({p.x, p.z, p.weight, p.y}, {p.width, p.width / p.groups, p.z_stride});
  auto* const start_with = !is_packed      ? start<T, 1, 8, kGate, 0>
                           : packs <= 16   ? start<T, kWidth, 2, kGate, 8>
                           : packs <= 32   ? start<T, kWidth, 4, kGate, 8>
                           : packs <= 64   ? start<T, kWidth, 4, kGate, 16>
                           : packs <= 2048 ? start<T, kWidth, 4, kGate, 0>
                                           : start<T, kWidth, 8, kGate, 0>;
  start_with(name, p, stream);
}

}  // namespace

template <typename T>
void gated_rms_norm(const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  check_and_start<Gate::kFirst>("gated_rms_norm", p, stream);
}

template <typename T>
void rms_norm_gated(const GatedRmsNormParams<T>& p, cudaStream_t stream) {
  check_and_start<Gate::kLast>("rms_norm_gated", p, stream);
}

template void gated_rms_norm<float>(const GatedRmsNormParams<float>&, cudaStream_t);
template void rms_norm_gated<float>(const GatedRmsNormParams<float>&, cudaStream_t);

}  // namespace assay::fast

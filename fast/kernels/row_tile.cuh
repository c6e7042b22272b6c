// Rows of a norm in registers: a team of threads (a block, or some lanes of a warp) reads a tile of a row by accesses
// that are all in flight together, and writes it from where it holds it.
#pragma once

#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

inline constexpr int kMaxRowThreads = 512;

// Threads of a block that owns one row of `packs` accesses, kPacks a thread.
template <int kPacks>
constexpr int row_threads(int64_t packs) {
  const int64_t threads = ceil_div(ceil_div(packs, kPacks), kWarp) * kWarp;
  return threads < kMaxRowThreads ? static_cast<int>(threads) : kMaxRowThreads;
}

// Calls visit(k, pack) for the packs of this thread: those thread + k * team that are below `packs`.
template <int kPacks, typename Visit>
__device__ inline void for_own_packs(int64_t packs, int thread, int team, Visit visit) {
  const int count = static_cast<int>(min(packs, static_cast<int64_t>(team) * kPacks));
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
    const int pack = thread + k * team;
    if (pack < count) visit(k, pack);
  }
}

// Packs past the row's end are zeros.
template <int kPacks, int kWidth, typename T>
__device__ inline void load_tile(const T* row, int64_t packs, int thread, int team, float (&tile)[kPacks][kWidth]) {
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) tile[k][i] = 0;
  }
  for_own_packs<kPacks>(packs, thread, team, [&](int k, int pack) { load_pack<kWidth>(row + pack * kWidth, tile[k]); });
}

template <int kPacks, int kWidth, typename T>
__device__ inline void store_tile(T* row, int64_t packs, int thread, int team, const float (&tile)[kPacks][kWidth]) {
  for_own_packs<kPacks>(packs, thread, team,
                        [&](int k, int pack) { store_pack<kWidth>(row + pack * kWidth, tile[k]); });
}

// The thread's own, one sum for each place of a pack, then those two by two.
template <int kPacks, int kWidth>
__device__ inline float sum_squares(const float (&tile)[kPacks][kWidth]) {
  float sums[kWidth] = {};
#pragma unroll
  for (int k = 0; k < kPacks; ++k) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sums[i] = fmaf(tile[k][i], tile[k][i], sums[i]);
  }
#pragma unroll
  for (int half = kWidth / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace assay::fast

// What the two kernels of gated_delta_rule_chunked share: the workspace of one chunk, staging in shared memory, which
// part of a product a lane owns.
#pragma once

#include <cstdint>
#include <type_traits>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

// Of one (row, value head, chunk); the names are those of gated_delta_rule.hpp. Positions beyond the sequence have
// beta 0, so that columns of X and P X beyond it are 0. The square of 32 above the diagonal, which is 0, is neither
// written nor read.
struct DeltaRuleWithin {
  float x[kDeltaRuleChunk][kDeltaRuleChunk];   // X[i][j]
  float px[kDeltaRuleChunk][kDeltaRuleChunk];  // (P X)[i][j]
  float factors[4][kDeltaRuleChunk];           // by step, in the order of DeltaRuleFactor
};

enum DeltaRuleFactor {
  kKeyFromStart,    // e^{c_i} times what makes k[i] to k^[i]
  kQueryFromStart,  // e^{c_i} times what makes q[i] to q^[i]
  kKeyToEnd,        // e^{c_Q - c_i} times what makes k[i] to k^[i]
  kChunkDecay,      // e^{c_Q}, the same for every step
};

inline constexpr int kDeltaRuleDepth = 32;  // summands staged in shared memory at a time
// Rows of a staged slab: 16-byte aligned, eight neighbouring rows in different banks.
inline constexpr int kDeltaRuleSlabPitch = kDeltaRuleDepth + 4;
inline constexpr int kDeltaRuleSlab = 2 * kDeltaRuleChunk * kDeltaRuleSlabPitch;  // floats, of k and q

// A warp owns 4 rows times 8 packs of columns of a product: eight neighbouring lanes, which shared memory serves
// together when they load 16 bytes each, 2 rows and 4 packs.
__device__ inline int delta_rule_lane_row() { return static_cast<int>(threadIdx.x % 2 + threadIdx.x % kWarp / 16 * 2); }
__device__ inline int delta_rule_lane_column() { return static_cast<int>(threadIdx.x / 2 % 8); }

// Elements [at, at + 4) of a row of `width` elements, 0 beyond it and where there is no such row. kWidth 4: width is a
// multiple of 4 and the row is aligned.
template <int kWidth, typename T>
__device__ inline void load_quad(const T* row, int64_t at, int64_t width, bool is_there, float (&to)[4]) {
  if constexpr (kWidth == 4) {
    if (is_there && at < width) return load_pack<4>(row + at, to);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = 0.0f;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = is_there && at + i < width ? to_float(row[at + i]) : 0.0f;
  }
}

// kCount floats to shared memory, asynchronously; zeros where not is_there.
template <int kCount>
__device__ inline void copy_async(float* to, const float* from, bool is_there) {
  constexpr int kBytes = kCount * static_cast<int>(sizeof(float));
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = is_there ? kBytes : 0;
  if constexpr (kCount == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}

// Four elements of a row of which `left` exist, the others as 0, to shared memory: in float32 by copy_async.
template <int kWidth, typename T>
__device__ inline void stage_quad(float* to, const T* from, int left) {
  if constexpr (std::is_same_v<T, float>) {
#pragma unroll
    for (int i = 0; i < 4; i += kWidth) copy_async<kWidth>(to + i, from + i, i < left);
  } else {
    float quad[4];
    load_quad<kWidth>(from, 0, left, true, quad);
    store_pack<4>(to, quad);
  }
}

// The elements of such a row that exist.
template <int kWidth, typename T>
__device__ inline void store_quad(T* row, int64_t at, int64_t width, const float (&from)[4]) {
  if constexpr (kWidth == 4) {
    if (at < width) store_pack<4>(row + at, from);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (at + i < width) row[at + i] = from_float<T>(from[i]);
    }
  }
}

}  // namespace assay::fast

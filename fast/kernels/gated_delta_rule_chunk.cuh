// What the two kernels of gated_delta_rule_chunked share: the workspace of one chunk, tile sizes, bounded loads.
#pragma once

#include <cstdint>

#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

// Of one (row, value head, chunk); the names are those of gated_delta_rule.hpp. Positions beyond the sequence have
// beta 0, so that columns of X and P X beyond it are 0.
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

inline constexpr int kDeltaRuleThreads = 256;
inline constexpr int kDeltaRuleDepth = 32;  // summands staged in shared memory at a time
// Rows of a staged slab: 16-byte aligned, eight neighbouring rows in different banks.
inline constexpr int kDeltaRuleSlabPitch = kDeltaRuleDepth + 4;

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

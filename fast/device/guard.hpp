// Guard words and poison: device side of the arena's checked mode.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::fast {

// Both are NaN as float32: a kernel that reads fresh memory, or beyond its buffer, computes NaN.
inline constexpr uint32_t kPoison = 0xFFFFFFFFu;
inline constexpr uint32_t kGuard = 0xFFA5C396u;

// words [0, words) at base: kPoison in [payload_begin, payload_end), kGuard elsewhere.
void fill_guarded(uint32_t* base, int64_t words, int64_t payload_begin, int64_t payload_end, cudaStream_t stream);

struct GuardRegion {
  const uint32_t* words;
  int64_t count;
  bool operator==(const GuardRegion&) const = default;
};

// regions, first: device pointers. *first becomes the smaller of itself and the index of the first region that holds a
// word other than kGuard. The caller sets *first to INT_MAX before.
void find_overwritten(const GuardRegion* regions, int count, int* first, cudaStream_t stream);

// cudaErrorNoKernelImageForDevice or cudaErrorInvalidDeviceFunction where the running device cannot execute the kernels
// that were built; another code where it could not be asked.
cudaError_t look_for_kernels();

}  // namespace assay::fast

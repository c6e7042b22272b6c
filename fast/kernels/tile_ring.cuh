// A warp's ring of slots in shared memory, filled from device memory in the background and drained in the same order.
// Every lane copies the packs that it reads itself: those of keys lane / kLanes, plus every kWarp / kLanes, and of
// lanes lane % kLanes, plus every kLanes. So it waits for its own copies alone.
#pragma once

#include <cstdint>

#include "fast/kernels/async_copy.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

__device__ inline uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

// One pack; zeros where there is none to copy.
template <int kWidth, typename T>
__device__ inline void copy_async(T* to, const T* from, bool is_there) {
  constexpr int kBytes = kWidth * static_cast<int>(sizeof(T));
  const int bytes = is_there ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes)
                 : "memory");
  } else if constexpr (kBytes >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes),
                 "r"(bytes)
                 : "memory");
  } else {
    float pack[kWidth] = {};
    if (is_there) load_pack<kWidth>(from, pack);
    store_pack<kWidth>(to, pack);
  }
}

template <typename T, int kWidth, int kLanes, int kPacks, int kKeys, int kSlots>
struct TileRing {
  T* slots;
  int slot_elements;
  int fill_slot = 0, drain_slot = 0;

  // Zeros from `count` keys on; without a key it is a turn of the ring and nothing else.
  __device__ void fill(const T* from, int count, int width) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    if (count > 0) {
      T* to = slots + fill_slot * slot_elements;
#pragma unroll
      for (int k = 0; k < kKeys; k += kWarp / kLanes) {
        const int key = k + lane / kLanes;
#pragma unroll
        for (int pack = 0; pack < kPacks; ++pack) {
          const int d = (pack * kLanes + lane % kLanes) * kWidth;
          const bool is_there = key < count;
          if (d < width) copy_async<kWidth>(to + key * width + d, is_there ? from + key * width + d : from, is_there);
        }
      }
    }
    commit_copies();
    fill_slot = fill_slot + 1 == kSlots ? 0 : fill_slot + 1;
  }
  // What this lane asked for in the oldest slot.
  __device__ const T* drain() const {
    wait_for_copies_but<kSlots - 1>();
    return slots + drain_slot * slot_elements;
  }
  __device__ void release() {
    __syncwarp();
    drain_slot = drain_slot + 1 == kSlots ? 0 : drain_slot + 1;
  }
};

}  // namespace assay::fast

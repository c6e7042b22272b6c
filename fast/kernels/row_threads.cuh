// Threads of a block that owns one row of `packs` accesses: about two accesses a thread, one warp at least.
#pragma once

#include <cstdint>

#include "fast/kernels/launch.cuh"

namespace assay::fast {

inline constexpr int kMaxRowThreads = 512;

constexpr int row_threads(int64_t packs) {
  int threads = kWarp;
  while (threads < kMaxRowThreads && threads * 2 < packs) threads *= 2;
  return threads;
}

}  // namespace assay::fast

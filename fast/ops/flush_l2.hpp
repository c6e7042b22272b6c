// flush_l2: leaves in the L2 cache nothing that ran before, and nothing that has yet to be written back: a launch
// behind it pays for its own bytes only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::fast {

// Sets `bytes`, several times the cache, to zero and reads them again. scratch is 16-byte aligned, bytes a multiple
// of 16.
void flush_l2(void* scratch, int64_t bytes, cudaStream_t stream);

}  // namespace assay::fast

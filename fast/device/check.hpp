// CUDA status codes as Assay errors. cudaErrorMemoryAllocation is MemoryError with the device's free and total bytes,
// everything else HarnessError with the name and text of the code and what was being done.
#pragma once

#include <cuda_runtime_api.h>

namespace assay::fast {

// what: the call or kernel, for the message ("cudaMemcpyAsync of probe layers.0.norm").
void check(cudaError_t status, const char* what);

// After a launch: reports a refused launch at once; a fault inside the kernel shows at the next synchronisation.
void check_launch(const char* kernel);

}  // namespace assay::fast

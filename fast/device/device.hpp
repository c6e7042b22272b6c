// The GPU the fast path would use (CUDA device 0), and why it cannot be used if it cannot. Asking never throws, so a
// machine without a GPU or driver can still be told what is missing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace assay::fast {

struct DeviceFacts {
  bool is_usable = false;
  // The first call that failed for another reason than a missing device, driver or kernel image: a GPU without free
  // memory, one that fell off the bus. Then the device is there and failing, which is no reason to skip anything.
  cudaError_t failure = cudaSuccess;
  std::string reason;        // why not, and what to do; empty when usable
  std::string name;          // "NVIDIA H200 sm_90"; "none: <reason>" when missing; "failing: <reason>"
  std::string architecture;  // "sm_90"
  int multiprocessors = 0;
  int64_t l2_bytes = 0;
  std::vector<std::string> versions;  // "cuda 13.0", "driver 13.0"
};

// What CUDA answered when it was started.
struct StartedCuda {
  cudaError_t status = cudaSuccess;  // of the first call that failed, the look for a kernel image being the last
  int devices = 0;
  int driver = 0;               // 12040 for CUDA 12.4; 0: no driver
  cudaDeviceProp properties{};  // of device 0; name is empty while it was not read
};

// The facts that follow from the answers alone.
DeviceFacts facts_of(const StartedCuda& started);

// Looks at device 0 once a process; the answer does not change.
const DeviceFacts& device_facts();

// Returns if the device is usable. UnsupportedError with the reason where it is missing; MemoryError where its memory
// is full, HarnessError where it fails otherwise.
void require_device();

}  // namespace assay::fast

// The GPU the fast path would use (CUDA device 0), and why it cannot be used if it cannot. Asking never throws, so a
// machine without a GPU or driver can still be told what is missing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace assay::fast {

struct DeviceFacts {
  bool is_usable = false;
  std::string reason;        // why not, and what to do; empty when usable
  std::string name;          // "NVIDIA H200 sm_90"; "none: <reason>" when not usable
  std::string architecture;  // "sm_90"
  int multiprocessors = 0;
  int64_t l2_bytes = 0;
  std::vector<std::string> versions;  // "cuda 13.0", "driver 13.0"
};

// Looks at device 0 once a process; the answer does not change.
const DeviceFacts& device_facts();

// UnsupportedError with the reason unless the device is usable.
void require_device();

}  // namespace assay::fast

// Groups of a thread's asynchronous copies (cp.async): what was started before a commit is a group. What has arrived
// the thread itself sees after the wait, the others of its block from the next barrier on.
#pragma once

#include <cuda_runtime.h>

namespace assay::fast {

__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all but the youngest kPending groups have arrived.
template <int kPending>
__device__ inline void wait_for_copies_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Until every copy has arrived, committed or not.
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

}  // namespace assay::fast

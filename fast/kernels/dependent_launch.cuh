// launch_dependent: launch, behind a kernel of the same stream that calls let_dependents_start(). The two overlap: what
// the earlier one wrote may be read only after wait_for_earlier(), which every block must call.
#pragma once

#include <algorithm>
#include <type_traits>

#include "fast/kernels/launch.cuh"

namespace assay::fast {

template <typename... Parameters>
void launch_dependent(const char* what, void (*kernel)(Parameters...), int64_t blocks, int threads, cudaStream_t stream,
                      const std::type_identity_t<Parameters>&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(std::min(blocks, kMaxBlocks)));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

__device__ inline void let_dependents_start() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ inline void wait_for_earlier() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace assay::fast

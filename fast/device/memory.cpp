#include "fast/device/memory.hpp"

#include <algorithm>
#include <climits>
#include <string>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"

namespace assay::fast {

void* Memory::allocate(int64_t bytes) {
  void* base = take(bytes);
  ++use_.allocations;
  use_.current_bytes += bytes;
  use_.peak_bytes = std::max(use_.peak_bytes, use_.current_bytes);
  return base;
}

void Memory::free(void* base, int64_t bytes) noexcept {
  give(base);
  use_.current_bytes -= bytes;
}

void Memory::count_weight_bytes(int64_t resident) {
  use_.peak_weight_bytes = std::max(use_.peak_weight_bytes, resident);
}

CudaMemory::~CudaMemory() { cudaFree(table_); }

void CudaMemory::fill(void* base, int64_t words, int64_t payload_begin, int64_t payload_end) {
  fill_guarded(static_cast<uint32_t*>(base), words, payload_begin, payload_end, stream_);
}

int CudaMemory::first_overwritten(const std::vector<GuardRegion>& regions) {
  if (regions.empty()) return -1;
  const int64_t regions_bytes = static_cast<int64_t>(regions.size() * sizeof(GuardRegion));
  if (table_bytes_ < regions_bytes + 16) {
    check(cudaFree(table_), "cudaFree of the guard table");
    table_ = nullptr;
    table_bytes_ = 2 * regions_bytes + 16;
    check(cudaMalloc(&table_, static_cast<size_t>(table_bytes_)), "cudaMalloc of the guard table");
  }
  int first = INT_MAX;
  int* found = reinterpret_cast<int*>(static_cast<char*>(table_) + regions_bytes);
  check(cudaMemcpyAsync(table_, regions.data(), static_cast<size_t>(regions_bytes), cudaMemcpyHostToDevice, stream_),
        "upload of the guard table");
  check(cudaMemcpyAsync(found, &first, sizeof(first), cudaMemcpyHostToDevice, stream_), "upload of the guard table");
  find_overwritten(static_cast<const GuardRegion*>(table_), static_cast<int>(regions.size()), found, stream_);
  check(cudaMemcpyAsync(&first, found, sizeof(first), cudaMemcpyDeviceToHost, stream_), "download of the guard result");
  check(cudaStreamSynchronize(stream_), "check of guard words");
  return first == INT_MAX ? -1 : first;
}

void* CudaMemory::take(int64_t bytes) {
  void* base = nullptr;
  const cudaError_t status = cudaMalloc(&base, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw MemoryError("device memory", std::to_string(bytes) + " bytes asked for, " + std::to_string(free) + " of " +
                                           std::to_string(total) + " bytes free, " +
                                           std::to_string(use().current_bytes) + " held by this model");
  }
  check(status, "cudaMalloc");
  return base;
}

void CudaMemory::give(void* base) noexcept { cudaFree(base); }

}  // namespace assay::fast

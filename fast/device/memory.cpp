#include "fast/device/memory.hpp"

#include <algorithm>
#include <climits>
#include <string>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"

namespace assay::fast {

namespace {

constexpr size_t kTableStart = 16;  // of the regions, behind the index found
constexpr int kNoneFound = INT_MAX;

void clear_found(int* found, cudaStream_t stream) {
  check(cudaMemcpyAsync(found, &kNoneFound, sizeof(kNoneFound), cudaMemcpyHostToDevice, stream),
        "upload of the guard table");
}

}  // namespace

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
  reserve_table(regions.size());
  int* found = reinterpret_cast<int*>(table_);
  auto* table = reinterpret_cast<GuardRegion*>(table_ + kTableStart);
  if (regions != uploaded_) {
    uploaded_.clear();
    check(cudaMemcpyAsync(table, regions.data(), regions.size() * sizeof(GuardRegion), cudaMemcpyHostToDevice, stream_),
          "upload of the guard table");
    uploaded_ = regions;
  }
  find_overwritten(table, static_cast<int>(regions.size()), found, stream_);
  int first = kNoneFound;
  check(cudaMemcpyAsync(&first, found, sizeof(first), cudaMemcpyDeviceToHost, stream_), "download of the guard result");
  check(cudaStreamSynchronize(stream_), "check of guard words");
  if (first == kNoneFound) return -1;
  clear_found(found, stream_);
  return first;
}

void CudaMemory::reserve_table(size_t regions) {
  if (regions <= table_room_) return;
  check(cudaFree(table_), "cudaFree of the guard table");
  table_ = nullptr;
  table_room_ = 0;
  uploaded_.clear();
  const size_t room = 2 * regions;
  check(cudaMalloc(reinterpret_cast<void**>(&table_), kTableStart + room * sizeof(GuardRegion)),
        "cudaMalloc of the guard table");
  clear_found(reinterpret_cast<int*>(table_), stream_);
  table_room_ = room;
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

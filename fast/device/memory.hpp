// Memory: where an arena's slabs come from and how its guard words are written and read. CudaMemory is the device;
// a test can stand in host memory and exercise the arena without a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/device/guard.hpp"

namespace assay::fast {

class Memory {
 public:
  virtual ~Memory() = default;
  // At least 256-byte aligned. MemoryError with the bytes asked for, free and in all. Counted.
  void* allocate(int64_t bytes);
  void free(void* base, int64_t bytes) noexcept;
  // As fill_guarded, in words of 4 bytes.
  virtual void fill(void* base, int64_t words, int64_t payload_begin, int64_t payload_end) = 0;
  // Index of the first region that was overwritten, -1 if none was. Waits for the work queued so far; without a region
  // it does nothing.
  virtual int first_overwritten(const std::vector<GuardRegion>& regions) = 0;
  const MemoryUse& use() const { return use_; }
  void count_weight_bytes(int64_t resident);  // keeps the peak

 protected:
  virtual void* take(int64_t bytes) = 0;
  virtual void give(void* base) noexcept = 0;

 private:
  MemoryUse use_;
};

// cudaMalloc; fills and checks are ordered on `stream`, which outlives this object.
class CudaMemory : public Memory {
 public:
  explicit CudaMemory(cudaStream_t stream) : stream_(stream) {}
  ~CudaMemory() override;
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  void fill(void* base, int64_t words, int64_t payload_begin, int64_t payload_end) override;
  int first_overwritten(const std::vector<GuardRegion>& regions) override;

 protected:
  void* take(int64_t bytes) override;
  void give(void* base) noexcept override;

 private:
  void reserve_table(size_t regions);

  cudaStream_t stream_;
  // The index found, then the regions of the last check: those of a step are the same as of the step before it. Not
  // counted: no model asked for it.
  char* table_ = nullptr;
  size_t table_room_ = 0;  // in regions
  std::vector<GuardRegion> uploaded_;
};

}  // namespace assay::fast

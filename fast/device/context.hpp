// Context: what one loaded model (or the ops run alone) computes with: a stream, counted device memory, cuBLASLt, and
// the record of the kernels that were launched.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "fast/device/linear.hpp"
#include "fast/device/memory.hpp"

namespace assay::fast {

class Stream {
 public:
  Stream();
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Context {
 public:
  Context() : memory_(stream_.get()), linear_(memory_) {}

  cudaStream_t stream() const { return stream_.get(); }
  CudaMemory& memory() { return memory_; }
  void linear(const LinearParams& p) {
    linear_(p, stream());
    record(linear_id(p));
  }
  // Launch sites call this after the launch they name.
  void record(std::string_view kernel);
  void forget_kernels() { kernels_.clear(); }
  const std::vector<std::string>& kernels() const { return kernels_; }  // each once, in order of first launch
  void synchronize(const char* what);

 private:
  Stream stream_;
  CudaMemory memory_;
  Linear linear_;
  std::vector<std::string> kernels_;
};

}  // namespace assay::fast

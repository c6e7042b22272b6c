// linear: y = x weight^T + bias, by cuBLASLt; with accumulate, y = y + x weight^T + bias.
//
// in   x       [T, in]    row t starts at t * x_stride
//      weight  [out, in]  dense
//      bias    [out]      null: none; 16-byte aligned
// out  y       [T, out]   row t starts at t * y_stride; may not alias x
//
// requires  T, in, out >= 1 and below 2^31; x_stride >= in, y_stride >= out
// cost      2 T in out flops; (T in + out in + T out) * 4 bytes
// numerics  CUBLAS_COMPUTE_32F: float32 products and sums, no TF32. The algorithm is the heuristic's first choice for
//           the shape, strides and pointer alignment, chosen once; reductions that depend on the order in which blocks
//           finish are excluded, so a call repeats bit for bit
// twin      reference/ops/linear.hpp
//
// Column-major, as cuBLASLt sees it: D [out, T] = op(A) B with A = weight as [in, out] transposed, B = x as [in, T].
// The bias runs along D's rows, which is what its epilogue does.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "cases/spec/host_tensor.hpp"
#include "fast/device/arena.hpp"
#include "fast/device/memory.hpp"

namespace assay::fast {

struct LinearParams {
  const float* x = nullptr;
  int64_t x_stride = 0;
  const void* weight = nullptr;
  DType weight_dtype = DType::kF32;
  const float* bias = nullptr;
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t rows = 0;  // T
  int64_t in = 0;
  int64_t out = 0;
  bool accumulate = false;
};

// HarnessError with the status by name.
void check(cublasStatus_t status, const char* what);

// The largest power of two, at most 256, that divides the address.
uint32_t alignment_of(const void* pointer);

// One cuBLASLt handle, its workspace and the algorithms chosen so far.
class Linear {
 public:
  explicit Linear(Memory& memory);  // memory outlives it
  ~Linear();
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  void operator()(const LinearParams& p, cudaStream_t stream);  // UnsupportedError: a dtype other than float32

 private:
  struct Plan;
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, uint32_t, uint32_t, uint32_t>;
  Plan& plan(const LinearParams& p);

  Memory& memory_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

inline std::string_view linear_id(const LinearParams&) { return "linear_cublaslt_f32@sm_90"; }

}  // namespace assay::fast

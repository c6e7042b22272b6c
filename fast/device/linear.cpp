#include "fast/device/linear.hpp"

#include <climits>
#include <string>

#include "cases/spec/error.hpp"
#include "fast/kernels/require.hpp"

namespace assay::fast {

namespace {

// What NVIDIA recommends for Hopper; larger ones are never used by the float32 algorithms.
constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

std::string describe(const LinearParams& p) {
  return "linear [" + std::to_string(p.rows) + ", " + std::to_string(p.in) + "] by [" + std::to_string(p.out) + ", " +
         std::to_string(p.in) + "]";
}

struct Preference {
  cublasLtMatmulPreference_t handle = nullptr;
  Preference() { check(cublasLtMatmulPreferenceCreate(&handle), "cublasLtMatmulPreferenceCreate"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(handle); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(handle, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

}  // namespace

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw HarnessError(what, std::string(cublasLtGetStatusName(status)) + " (" + cublasLtGetStatusString(status) + ")");
}

uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

struct Linear::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (d != nullptr) cublasLtMatrixLayoutDestroy(d);
    if (b != nullptr) cublasLtMatrixLayoutDestroy(b);
    if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    check(cublasLtMatmulDescSetAttribute(operation, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }
};

Linear::Linear(Memory& memory) : memory_(memory) {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
  try {
    workspace_ = memory_.allocate(kWorkspaceBytes);
  } catch (...) {
    cublasLtDestroy(handle_);
    throw;
  }
}

Linear::~Linear() {
  plans_.clear();
  memory_.free(workspace_, kWorkspaceBytes);
  cublasLtDestroy(handle_);
}

Linear::Plan& Linear::plan(const LinearParams& p) {
  const Key key{p.rows,
                p.in,
                p.out,
                p.x_stride,
                p.y_stride,
                p.bias != nullptr,
                p.accumulate,
                alignment_of(p.x),
                alignment_of(p.weight),
                alignment_of(p.y)};
  const auto found = plans_.find(key);
  if (found != plans_.end()) return *found->second;

  auto plan = std::make_unique<Plan>();
  check(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  plan->set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  plan->set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  plan->set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.bias != nullptr ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);
  if (p.bias != nullptr) plan->set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias));

  const auto in = static_cast<uint64_t>(p.in), out = static_cast<uint64_t>(p.out), rows = static_cast<uint64_t>(p.rows);
  check(cublasLtMatrixLayoutCreate(&plan->a, CUDA_R_32F, in, out, p.in), "cublasLtMatrixLayoutCreate");
  check(cublasLtMatrixLayoutCreate(&plan->b, CUDA_R_32F, in, rows, p.x_stride), "cublasLtMatrixLayoutCreate");
  check(cublasLtMatrixLayoutCreate(&plan->d, CUDA_R_32F, out, rows, p.y_stride), "cublasLtMatrixLayoutCreate");

  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.weight));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.x));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.y));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.y));

  cublasLtMatmulHeuristicResult_t result{};
  int results = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, plan->operation, plan->a, plan->b, plan->d,
                                                               plan->d, preference.handle, 1, &result, &results);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && results == 0))
    throw UnsupportedError(describe(p), "cuBLASLt has no algorithm for this shape");
  check(status, describe(p).c_str());
  plan->algorithm = result.algo;
  return *plans_.emplace(key, std::move(plan)).first->second;
}

void Linear::operator()(const LinearParams& p, cudaStream_t stream) {
  if (p.weight_dtype != DType::kF32)
    throw UnsupportedError("linear", "weights in " + std::string(dtype_name(p.weight_dtype)) + "; float32 only");
  require_pointer("linear", "x", p.x);
  require_pointer("linear", "weight", p.weight);
  require_pointer("linear", "y", p.y);
  require_range("linear", "rows", p.rows, 1, INT_MAX);
  require_range("linear", "in", p.in, 1, INT_MAX);
  require_range("linear", "out", p.out, 1, INT_MAX);
  require_stride("linear", "x_stride", p.x_stride, p.in);
  require_stride("linear", "y_stride", p.y_stride, p.out);

  Plan& plan = this->plan(p);
  if (p.bias != nullptr) plan.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(p.bias));
  const float alpha = 1, beta = p.accumulate ? 1.0f : 0.0f;
  check(cublasLtMatmul(handle_, plan.operation, &alpha, p.weight, plan.a, p.x, plan.b, &beta, p.y, plan.d, p.y, plan.d,
                       &plan.algorithm, workspace_, static_cast<size_t>(kWorkspaceBytes), stream),
        describe(p).c_str());
}

}  // namespace assay::fast

// Weights on the device, read one by one from a WeightSource and checked against the model's table of weights.
//
// A weight keeps its dtype beside its bytes, and only `linear` looks at the dtype: 16-bit and 4-bit storage join there.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <string>

#include "cases/spec/model_config.hpp"
#include "cases/spec/weight_source.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

struct Weight {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;  // as in the checkpoint; a convolution's [C, 1, K] is read as [C, K]

  explicit operator bool() const { return data != nullptr; }
  const float* f32() const { return static_cast<const float*>(data); }
};

class Weights {
 public:
  // Reads every tensor of the config's table. InputError naming the tensor: missing, unexpected, of another shape, or
  // not finite. A head beside tied embeddings is ignored. Floating dtypes are converted to float32.
  Weights(const ModelConfig& config, const WeightSource& source, Arena& arena, cudaStream_t stream);

  const Weight& at(const std::string& name) const;  // InputError: no such weight
  Weight optional(const std::string& name) const;   // null data where the model has none
  // -exp(A_log) of the weight `name`, computed once in float32 on the host.
  const float* decay(const std::string& name) const;

 private:
  std::map<std::string, Weight> weights_;
  std::map<std::string, const float*> decays_;
};

}  // namespace assay::fast

// Weights on the device, read one by one from a WeightSource and checked against the model's table of weights.
//
// A weight keeps its dtype beside its bytes, and only `linear` looks at the dtype: 16-bit and 4-bit storage join there.
// Experts that the checkpoint has one by one lie behind one another (expert_stacks.hpp).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_source.hpp"
#include "fast/blocks/expert_stacks.hpp"
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
  // not finite. A head beside tied embeddings is ignored. Floating dtypes are converted to float32. arena outlives it.
  Weights(const ModelConfig& config, const WeightSource& source, Arena& arena, cudaStream_t stream);

  const Weight& at(const std::string& name) const;  // InputError: no such weight
  Weight optional(const std::string& name) const;   // null data where the model has none
  // -exp(A_log) of the weight `name`, computed once in float32 on the host.
  const float* decay(const std::string& name) const;
  // Values made from a config, kept beside the weights: those of the first call with this label.
  const float* keep(const std::string& label, const std::vector<float>& values);
  const int32_t* keep(const std::string& label, const std::vector<int32_t>& values);

 private:
  float* allocate_weight(const WeightSpec& spec, const ExpertStacks& stacks);

  Arena& arena_;
  cudaStream_t stream_;
  std::map<std::string, float*> stacks_;
  std::map<std::string, const void*> kept_;
  std::map<std::string, Weight> weights_;
  std::map<std::string, const float*> decays_;
};

}  // namespace assay::fast

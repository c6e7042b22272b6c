#include "reference/held_weight.hpp"

#include <algorithm>
#include <utility>

#include "cases/spec/error.hpp"
#include "reference/ops/nf4.hpp"
#include "reference/tensor.hpp"

namespace assay::reference {

namespace {

void require_finite(const at::Tensor& weight, const Shape& shape, const std::string& where, const std::string& held) {
  const at::Tensor bad = at::isfinite(weight).logical_not().flatten().nonzero();
  if (bad.numel() > 0)
    throw InputError(
        where, "is not finite at " + to_string(coordinates(bad[0].item<int64_t>(), shape)) + " when held " + held);
}

at::Tensor stored(const WeightSpec& spec, const WeightSource& source) {
  const HostTensor value = source.read(spec.name);
  const std::string where = source.where(spec.name);
  if (value.shape() != spec.shape)
    throw InputError(where, "has shape " + to_string(value.shape()) + ", the config asks for " + to_string(spec.shape));
  if (value.dtype() != DType::kF32 && value.dtype() != DType::kF16 && value.dtype() != DType::kBF16)
    throw InputError(where, "is stored as " + std::string(dtype_name(value.dtype())),
                     "weights are float32, float16 or bfloat16");
  return to_aten(value);
}

HeldWeight quantised(const WeightSpec& spec, const WeightSource& source, bool is_double) {
  const std::string where = source.where(spec.name);
  const char* kind = is_double ? "nf4dq" : "nf4";
  std::optional<Nf4Weight> nf4 = source.nf4(spec.name);
  if (nf4 && nf4->is_double() != is_double)
    throw InputError(where, std::string("is stored as ") + (is_double ? "nf4" : "nf4dq") + ", to be held as " + kind);
  if (!nf4) {
    const at::Tensor value = stored(spec, source).to(at::kFloat);
    require_finite(value, spec.shape, where, "in float32");
    nf4 = quantize_nf4(value, is_double);
  }
  const at::Tensor value = to_aten(dequantized(*nf4, spec.shape));
  require_finite(value, spec.shape, where, std::string("as ") + kind);
  return {value, std::move(nf4)};
}

}  // namespace

HeldWeight held_weight(const WeightSpec& spec, const WeightSource& source, const LoadOptions& options) {
  if (std::count(options.quantized.begin(), options.quantized.end(), spec.name) > 0)
    return quantised(spec, source, options.quantization == "nf4dq");
  if (!options.quantization.empty() && source.nf4(spec.name))
    throw InputError(source.where(spec.name), "is stored quantised and is to be kept as it is");
  const DType dtype = spec.keeps_float32 ? DType::kF32 : options.weights;
  const at::Tensor value = stored(spec, source).to(scalar_type(dtype)).to(at::kFloat);
  require_finite(value, spec.shape, source.where(spec.name), "in " + std::string(dtype_name(dtype)));
  return {value, std::nullopt};
}

}  // namespace assay::reference

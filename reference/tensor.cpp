#include "reference/tensor.hpp"

#include <cstring>

#include "cases/spec/error.hpp"

namespace assay::reference {

namespace {

DType dtype_of(at::ScalarType type) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32, DType::kU8})
    if (scalar_type(dtype) == type) return dtype;
  throw InputError("reference", "a tensor of ATen type " + std::string(c10::toString(type)) + " has no host form");
}

}  // namespace

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kU8:
      return at::kByte;
  }
  throw InputError("reference", "a dtype that the reference does not know");
}

at::Tensor to_aten(const HostTensor& tensor) {
  at::Tensor copy = at::empty(tensor.shape(), at::TensorOptions().dtype(scalar_type(tensor.dtype())));
  if (tensor.count() > 0) std::memcpy(copy.data_ptr(), tensor.bytes().data(), tensor.bytes().size());
  return copy;
}

HostTensor to_host(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.contiguous();
  HostTensor copy(dtype_of(dense.scalar_type()), dense.sizes().vec());
  if (copy.count() > 0) std::memcpy(copy.bytes().data(), dense.data_ptr(), copy.bytes().size());
  return copy;
}

}  // namespace assay::reference

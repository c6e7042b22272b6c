// HostTensor <-> at::Tensor. Both directions copy; tensors on the ATen side are dense CPU tensors.
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/host_tensor.hpp"

namespace assay::reference {

at::ScalarType scalar_type(DType dtype);
at::Tensor to_aten(const HostTensor& tensor);
// InputError for a dtype that HostTensor does not have.
HostTensor to_host(const at::Tensor& tensor);

}  // namespace assay::reference

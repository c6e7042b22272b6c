// Pass: what every block of one forward call shares.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "reference/forms.hpp"
#include "reference/probes.hpp"

namespace assay::reference {

struct Pass {
  at::Tensor mask;       // [B, L], 1 or 0 in the model's dtype, of the new columns; undefined = no padding
  at::Tensor seen_mask;  // bool [B, P + L], of every column so far, the new ones included; undefined = no padding
  at::Tensor positions;  // int64 [B, L]: real tokens before this one; 0 at padding
  const Forms& forms;
  Probes& probes;

  // x [B, L, ...] with masked columns set to 0.
  at::Tensor masked(const at::Tensor& x) const { return mask.defined() ? x * mask.unsqueeze(-1) : x; }
  // value, kept as the probe `name`.
  const at::Tensor& keep(const std::string& name, const at::Tensor& value) const {
    probes.add(name, value);
    return value;
  }
};

}  // namespace assay::reference

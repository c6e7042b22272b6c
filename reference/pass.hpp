// Pass: what every block of one forward call shares.
#pragma once

#include <ATen/ATen.h>

#include "reference/forms.hpp"
#include "reference/probes.hpp"

namespace assay::reference {

struct Pass {
  at::Tensor mask;  // [B, L], 1 or 0 in the model's dtype, of the new columns; undefined = no padding
  const Forms& forms;
  Probes& probes;

  // x [B, L, ...] with masked columns set to 0.
  at::Tensor masked(const at::Tensor& x) const { return mask.defined() ? x * mask.unsqueeze(-1) : x; }
};

}  // namespace assay::reference

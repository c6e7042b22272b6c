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
  at::ScalarType rounds_to = at::kFloat;  // reference/emulated_entry.cpp

  // x [B, L, ...] with masked columns set to 0.
  at::Tensor masked(const at::Tensor& x) const { return mask.defined() ? x * mask.unsqueeze(-1) : x; }
  // What an op of a 16-bit engine would store: x rounded to that dtype, in float32 again. x itself where the model
  // computes in float32.
  at::Tensor rounded(const at::Tensor& x) const { return rounds_to == at::kFloat ? x : x.to(rounds_to).to(at::kFloat); }
  // value rounded, kept as the probe `name`.
  at::Tensor keep(const std::string& name, const at::Tensor& value) const {
    const at::Tensor kept = rounded(value);
    probes.add(name, kept);
    return kept;
  }
};

}  // namespace assay::reference

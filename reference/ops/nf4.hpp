// quantize_nf4: a weight's NF4 codes and scales, as bitsandbytes 0.50.2 computes them on a CPU, bit for bit. The format
// and the way back (dequantized) are in cases/spec/nf4.hpp.
//
// in   weight     [...]  float32, dense, finite, n >= 1 elements
//      is_double  quantise the scales as well
//
// codes     x = clamp(weight * (1 / absmax), -1, 1), in the last block weight / absmax where 64 does not divide n; the
//           code is the number of midpoints of neighbouring levels that are below x, so that a tie goes to the lower
//           one. absmax is taken for at least 1e-38, and stored so in a last short block only.
// absmax    double: offset = mean, summed in eight lanes as torch does; x = clamp((absmax - offset) * (1 / nested), -1,
//           1), moved to the nearest of 65536 even steps of [-1, 1], and then as above with the 256 levels. A block of
//           zeros has codes 0.
// numerics  float32, in the order above; one fused multiply-add finds the step
// source    bitsandbytes 0.50.2: backends/default/ops.py quantize_4bit, functional.py quantize_4bit and
//           csrc/cpu_ops.cpp quantize_cpu; torch's sum over contiguous float32
#pragma once

#include <ATen/ATen.h>

#include "cases/spec/nf4.hpp"

namespace assay::reference {

Nf4Weight quantize_nf4(const at::Tensor& weight, bool is_double);

}  // namespace assay::reference

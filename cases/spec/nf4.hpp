// NF4 as bitsandbytes 0.50.2 stores it: the format, its two tables, and how it is read back. How a weight is quantised
// is in the implementations (reference/ops/nf4.hpp).
//
// A weight is taken as one row of n elements. Each block of 64 (the last may be shorter) has a scale, its largest
// magnitude; each element is the index of one of 16 levels in [-1, 1], two indices a byte, the first in the high four
// bits. With double quantisation the scales are 8-bit themselves: their mean, the offset, is taken off, and each block
// of 256 of them has a scale of its own and indices into a signed map of 256 levels.
//
//     weight[i] = level[code[i]] * scale[i / 64]
//     scale[b]  = absmax[b]                                                  ("nf4")
//     scale[b]  = scale_level[absmax[b]] * nested_absmax[b / 256] + offset   ("nf4dq"; product and sum rounded apart)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay {

inline constexpr int64_t kNf4Block = 64, kNf4NestedBlock = 256;

std::span<const float> nf4_levels();        // 16, ascending
std::span<const float> nf4_scale_levels();  // 256, ascending, from -0.993 to 1

struct Nf4Weight {
  HostTensor codes;           // uint8 [ceil(n / 2)]; an odd last one leaves the low four bits of 0: level 7
  HostTensor absmax;          // float32 or uint8 [blocks of 64]
  HostTensor nested_absmax;   // float32 [blocks of 256 absmax], absent without double quantisation
  HostTensor offset;          // float32 [1], likewise
  DType dtype = DType::kF32;  // of the weight before it was quantised: what is read back is rounded to it

  bool is_double() const { return !nested_absmax.absent(); }
};

// Under the names of Model::quantized: codes, absmax, nested_absmax, offset; those that there are.
std::vector<NamedTensor> named(const Nf4Weight& weight);

// What is wrong with the parts of a weight of n elements: dtypes and lengths; empty if nothing.
std::string nf4_problem(const Nf4Weight& weight, int64_t n);

// The scale of each block. Precondition: nf4_problem finds none.
std::vector<float> nf4_scales(const Nf4Weight& weight);
// float32 of that shape, rounded to weight.dtype. InputError where the parts do not belong to it.
HostTensor dequantized(const Nf4Weight& weight, const Shape& shape);

}  // namespace assay

// The frequencies of rotary embeddings, computed once on the host.
//
//     f[i] = theta^(-2i / width), i < width / 2, then linear, yarn or llama3 scaling (models.md B7)
//
// numerics  float32 at each step that the originals round to float32: the exponent, the power (in double, rounded
// once),
//           its inverse and every step of the scaling; the corners of yarn's ramp in double
// twin      inverse_frequencies of reference/ops/rotary.hpp
#pragma once

#include <vector>

#include "cases/spec/blocks/rotary.hpp"

namespace assay::fast {

std::vector<float> rotary_frequencies(const RotaryShape& shape);

}  // namespace assay::fast

// Which elements of a row a golden keeps: seeded, so that two recordings keep the same ones, and spread, so that a
// fault in any head, group or window column is seen.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay::golden {

// How many elements are kept of a row: all of 6 or fewer; 4 of a vector; of [heads, ...] one a head, no fewer than 4
// and no more than 16. The norm of the whole row is kept beside them.
int64_t sample_size(const Shape& row);

// Ascending flat indices into a row, one from each of `size` strata, chosen by Philox 4x32-10 with key = FNV-1a64(name)
// xor seed and counter = stratum. Strata are equal; in a row [heads, ...] with no more heads than strata none crosses a
// head, so every head is seen. Where the row's last dimension is at most 8 (a convolution's window) the last coordinate
// cycles through it as far as the strata hold it. Empty if size >= the row's elements: keep all.
std::vector<int64_t> sample_indices(std::string_view name, uint64_t seed, const Shape& row, int64_t size);

}  // namespace assay::golden

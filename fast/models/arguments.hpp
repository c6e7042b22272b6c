// Checks of what a caller hands to a session, before anything reaches the device. InputError naming row and column.
#pragma once

#include <cstdint>
#include <vector>

#include "cases/spec/subject.hpp"

namespace assay::fast {

// rows >= 1; a static cache has a limit >= 1, the others none.
void check_session_options(const SessionOptions& options);

// tokens: int64 [rows, L], L >= 1, each in [0, vocabulary). mask: absent, or uint8 [rows, past + L] of 0 and 1 in which
// no row has a 0 behind a 1 (left padding). limit > 0: past + L may not exceed it. Returns L.
int64_t check_call(const Call& call, int64_t rows, int64_t past, int64_t vocabulary, int64_t limit);

// Padded columns at the left of each row, [rows]; zeros where the mask is absent. The call has been checked.
std::vector<int64_t> padding_of(const Call& call, int64_t rows);
// 1 where column c in [first, first + columns) is real, 0 in the padding: [rows, columns].
std::vector<uint8_t> mask_of(const std::vector<int64_t>& padding, int64_t first, int64_t columns);
// Real tokens before each of those columns, 0 in the padding: [rows, columns].
std::vector<int64_t> positions_of(const std::vector<int64_t>& padding, int64_t first, int64_t columns);

// One source for each row, each in [0, rows).
void check_reorder(const std::vector<int64_t>& source, int64_t rows);

}  // namespace assay::fast

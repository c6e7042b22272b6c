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

// The mask's last `columns` columns, [rows, columns]; empty when the mask is absent or they are all ones.
std::vector<uint8_t> mask_of_columns(const Call& call, int64_t rows, int64_t past, int64_t columns);

// One source for each row, each in [0, rows).
void check_reorder(const std::vector<int64_t>& source, int64_t rows);

}  // namespace assay::fast

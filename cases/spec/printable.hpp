// Text from files that are not trusted: what may stand in a message, and what may name a tensor.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// UTF-8 (no overlong forms, no surrogates, at most U+10FFFF) without control characters.
bool is_printable_utf8(std::string_view text);

// At most 80 characters for a message: whatever is not printable ASCII as \xNN, so that a name cannot steer a terminal.
std::string printable(std::string_view text);

}  // namespace assay

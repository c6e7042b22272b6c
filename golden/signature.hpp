// Signature: the same text for the same failure. Message texts differ in last digits between two runs; status, probe,
// step, class of error and the power of two of the error in bounds do not.
#pragma once

#include <string>
#include <string_view>

#include "golden/compare.hpp"

namespace assay::golden {

// "FAIL:value:layers.3.mixer.conv1d:step5:2^8". The last part is floor(log2(|difference| / bound)); it is left out
// where that is not a number (wrong shape, not finite, tokens, a bound of zero).
std::string signature(std::string_view status, const Finding& finding);

}  // namespace assay::golden

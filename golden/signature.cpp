#include "golden/signature.hpp"

#include <fmt/format.h>

#include <cmath>

namespace assay::golden {

std::string signature(std::string_view status, const Finding& finding) {
  std::string text = fmt::format("{}:{}:{}", status, finding.what, finding.probe);
  if (finding.step >= 0) text += fmt::format(":step{}", finding.step);
  const double error = std::abs(finding.got - finding.expected) / finding.bound;
  if (std::isfinite(error) && error > 0) text += fmt::format(":2^{:.0f}", std::floor(std::log2(error)));
  return text;
}

}  // namespace assay::golden

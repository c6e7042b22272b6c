#include "cases/spec/error.hpp"

#include <utility>

namespace assay {

namespace {
std::string joined(const std::string& where, const std::string& problem, const std::string& advice) {
  std::string text = where.empty() ? problem : where + ": " + problem;
  if (!advice.empty()) text += "\n  " + advice;
  return text;
}
}  // namespace

Error::Error(std::string where, std::string what, std::string advice)
    : std::runtime_error(joined(where, what, advice)),
      where_(std::move(where)),
      problem_(std::move(what)),
      advice_(std::move(advice)) {}

}  // namespace assay

#include "golden/tokens.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/error.hpp"

namespace assay::golden {
namespace {

constexpr int64_t kFewestJudged = 8;

}  // namespace

TokenJudgement judge_tokens(const Golden& golden, std::span<const int64_t> tokens, const Bounds& bounds) {
  const auto length = static_cast<int64_t>(golden.tokens.size()), start = static_cast<int64_t>(golden.prompt.size());
  if (static_cast<int64_t>(golden.gap.size()) != length || static_cast<int64_t>(bounds.element.size()) != length)
    throw InputError(golden.id(), fmt::format("{} tokens, but {} gaps and {} bounds of logits", length,
                                              golden.gap.size(), bounds.element.size()));
  if (start < 1 || tokens.size() < golden.prompt.size() ||
      !std::equal(golden.prompt.begin(), golden.prompt.end(), tokens.begin()))
    throw InputError(golden.id(), "the tokens to judge do not start with the golden's prompt");

  TokenJudgement result;
  const int64_t end = std::min(length, static_cast<int64_t>(tokens.size()));
  for (int64_t i = start; i < end; ++i) {
    // Each of the two best logits may move by the bound.
    if (golden.gap[i - 1] <= 2 * bounds.element[i - 1]) {
      result.near_tie = i - 1;
      break;
    }
    ++result.judged;
    if (tokens[i] == golden.tokens[i]) continue;
    result.first = Finding{.probe = "tokens",
                           .position = i,
                           .expected = static_cast<double>(golden.tokens[i]),
                           .got = static_cast<double>(tokens[i]),
                           .bad = 1,
                           .of = result.judged,
                           .what = "token"};
    return result;
  }
  const int64_t greedy = length - start;
  if (result.judged < kFewestJudged || 2 * result.judged < greedy) {
    result.hollow = fmt::format("only {} of {} generated tokens could be judged", result.judged, greedy);
    if (result.near_tie) result.hollow += fmt::format("; near-tie at position {}", *result.near_tie);
  }
  return result;
}

}  // namespace assay::golden

// Judgement of freely generated tokens. Greedy choices are comparable up to the first near-tie: where the original's
// two best logits lie closer than twice the bound, a right implementation may choose either, and all that follows is
// another sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "golden/compare.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

struct TokenJudgement {
  int64_t judged = 0;               // generated tokens compared, the mismatch included
  std::optional<Finding> first;     // probe "tokens", what "token", position of the token, ids as expected and got
  std::optional<int64_t> near_tie;  // position whose logits leave the next token open; judging stops before that token
  std::string hollow;               // why too little was judged to prove anything; empty after a mismatch
};

// tokens: the subject's whole row, the golden's prompt first (InputError otherwise). bounds: of the golden's "logits".
// HOLLOW: fewer than 8 judged, or fewer than half of the golden's greedy tokens.
TokenJudgement judge_tokens(const Golden& golden, std::span<const int64_t> tokens, const Bounds& bounds);

}  // namespace assay::golden

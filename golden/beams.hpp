// Beam search: what the original's search weighed, and judging another search by it step by step.
//
// A step keeps `width` of the candidates (kept beam, token) with the largest sums of log-probabilities. Where the last
// one kept and the first one dropped lie closer than twice the bound of a sum, a right implementation may keep either,
// and all that follows is another search: judging ends before such a step.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "golden/compare.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

// Width and steps of a golden's search, as a config's input says them.
std::optional<Input::Beams> beams_of(const Golden& golden);

// The continuations that the steps lead to, best first: [width][steps] tokens.
std::vector<std::vector<int64_t>> sequences_of(const std::vector<BeamStep>& steps);

// From run.json's "f32" and "f64" searches of one input. HarnessError where the two precisions chose differently, or
// where the original's sequences or scores are not what its steps say.
BeamRecord compose_beams(const std::string& id, const nlohmann::json& searches);

// Bound of a sum of log-probabilities after each step: the rule's factor times the step's floor, but no less than
// twice `logits` (the bound of one logit: log-softmax subtracts another one) for every token summed.
std::vector<double> beam_bounds(const BeamRecord& record, const Rule& rule, double logits);

struct BeamJudgement {
  int64_t judged = 0;               // steps compared, the mismatch included
  Tally tally;                      // probe "beams"; position of a finding: the step's generated token
  std::optional<int64_t> near_tie;  // the step whose choice is open
  std::string hollow;               // why too little was judged: fewer than half of the steps, or none
};

// Kept beams are compared as a set: the order of two that tie says nothing. prompt: tokens before the first step.
BeamJudgement judge_beams(const BeamRecord& record, const std::vector<BeamStep>& got, const std::vector<double>& bounds,
                          int64_t prompt);

}  // namespace assay::golden

// What a subject says that it can do, against what a case needs and what really ran.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/subject.hpp"
#include "runners/leg_plan.hpp"

namespace assay {

// NoVerdict(SKIP, ...) where the subject or this machine lacks what the case needs.
void check_capabilities(const Case& test_case, const Capabilities& capabilities);

// A subject that has forms of this "op" says that steps of one column through a static cache are replays of a captured
// graph, which its kernels() then names "step_graph_replay...".
inline constexpr const char* kStepGraph = "step_graph";

// Whether a leg makes a call of one column behind others.
bool has_warm_steps(const LegPlan& plan);

// FALLBACK: what an accelerated subject should have launched and did not; empty if all of it ran.
struct LegKernels {
  std::map<std::string, std::string> forms;
  std::vector<std::string> kernels;
  bool must_replay = false;  // steps by a captured graph
};
std::string fallback_reason(const std::vector<std::string>& ops, const std::vector<LegKernels>& legs);

}  // namespace assay

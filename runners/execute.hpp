// Execute: one case on one loaded model, judged: a Verdict.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cases/spec/case.hpp"
#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"
#include "runners/capability.hpp"
#include "runners/goldens.hpp"
#include "runners/judge.hpp"
#include "runners/leg_models.hpp"
#include "runners/output_digest.hpp"
#include "runners/verdict.hpp"

namespace assay {

// One subject of one process. Keeps the last model loaded and what it learned about each config.
class Execution {
 public:
  Execution(Subject& subject, GoldenStore& goldens, golden::Rule rule = {})
      : subject_(subject), goldens_(goldens), rule_(rule), models_(subject) {}

  // Never throws for what the subject, the case or a golden does wrong: that is the verdict's status and reason.
  // evidence: filled for a failing case when given. ScratchError when a leg's checkpoint cannot be written.
  Verdict run(const Case& test_case, const ModelConfig& config, Evidence* evidence = nullptr);

 private:
  LegModels::Loaded load(const Case& test_case, const ModelConfig& config, const LegPlan& plan, LegJudge& judge);
  // A leg with beams and the whole runs of what it found; ids of the kernels that ran.
  std::vector<std::string> run_beams(Model& model, const ModelConfig& config, const LegPlan& plan, Judge& judge,
                                     OutputDigest& outputs);
  void run_case(const Case& test_case, const ModelConfig& config, Verdict& verdict, Evidence* evidence);
  std::string hollow(Model& model, const ModelConfig& config, const std::vector<LegPlan>& plans);  // why, or empty

  Subject& subject_;
  GoldenStore& goldens_;
  golden::Rule rule_;
  LegModels models_;
  std::optional<golden::Finding> wrong_weight_;  // of the model that models_ holds
  std::map<std::string, std::string> hollow_;    // by LegModels::identity()
};

// The identity of a case on a subject, before anything ran.
Verdict blank_verdict(const Case& test_case, const Capabilities& capabilities);

// PASS, MARGINAL, FAIL, FALLBACK or HOLLOW from what was found.
inline constexpr double kMarginal = 0.8;
Status settle(bool has_finding, bool fell_back, bool is_hollow, double used);

}  // namespace assay

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
#include "runners/goldens.hpp"
#include "runners/judge.hpp"
#include "runners/verdict.hpp"

namespace assay {

// One subject of one process. Keeps the last model loaded (cases come ordered by config) and what it learned about each
// config.
class Execution {
 public:
  Execution(Subject& subject, GoldenStore& goldens, golden::Rule rule = {})
      : subject_(subject), goldens_(goldens), rule_(rule) {}

  // Never throws for what the subject, the case or a golden does wrong: that is the verdict's status and reason.
  // evidence: filled for a failing case when given.
  Verdict run(const Case& test_case, const ModelConfig& config, Evidence* evidence = nullptr);

 private:
  Model& load(const Case& test_case, const ModelConfig& config);
  // A leg with beams and the whole runs of what it found; ids of the kernels that ran.
  std::vector<std::string> run_beams(Model& model, const ModelConfig& config, const LegPlan& plan, Judge& judge);
  void run_case(const Case& test_case, const ModelConfig& config, Verdict& verdict, Evidence* evidence);
  std::string hollow(Model& model, const ModelConfig& config, const std::vector<LegPlan>& plans);  // why, or empty

  Subject& subject_;
  GoldenStore& goldens_;
  golden::Rule rule_;
  std::string loaded_;  // key of model_
  std::unique_ptr<Model> model_;
  std::map<std::string, std::string> hollow_;  // by key
};

// The identity of a case on a subject, before anything ran.
Verdict blank_verdict(const Case& test_case, const Capabilities& capabilities);

// NoVerdict(SKIP, ...) where the subject or this machine lacks what the case needs.
void check_capabilities(const Case& test_case, const Capabilities& capabilities);

// FALLBACK: what an accelerated subject should have launched and did not; empty if all of it ran.
struct LegKernels {
  std::map<std::string, std::string> forms;
  std::vector<std::string> kernels;
};
std::string fallback_reason(const std::vector<std::string>& ops, const std::vector<LegKernels>& legs);

// PASS, MARGINAL, FAIL, FALLBACK or HOLLOW from what was found.
inline constexpr double kMarginal = 0.8;
Status settle(bool has_finding, bool fell_back, bool is_hollow, double used);

}  // namespace assay

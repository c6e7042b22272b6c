#include "runners/verdict.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "runners/console.hpp"
#include "runners/execute.hpp"
#include "runners/invocation.hpp"

namespace assay {
namespace {

Verdict failing() {
  Verdict v;
  v.subject = "fast";
  v.case_id = "jamba/cache.splits";
  v.model = "jamba";
  v.config = "tiny";
  v.aspect = "cache";
  v.tier = "ci";
  v.dtype = "float32";
  v.device = "NVIDIA H200 sm_90";
  v.status = Status::kFail;
  v.reason = "value of layers.3.mixer.conv_state";
  v.used = 308.2;
  v.used_by = "layers.3.mixer.conv_state";
  v.probes = 23;
  v.leg = "each";
  v.first.emplace();
  v.first->probe = "layers.3.mixer.conv_state";
  v.first->layer = 3;
  v.first->row = 1;
  v.first->step = 5;
  v.first->index = {0, 77};
  v.first->expected = 0.3125;
  v.first->got = 0.31897;
  v.first->bound = 2.1e-5;
  v.first->bad = 84;
  v.first->of = 4096;
  v.first->what = "value";
  v.kernels = {"ssd_chunked_f32@sm_90"};
  v.repeat = "assay run --subject fast --case jamba/cache.splits";
  v.signature = signature_of(v);
  return v;
}

TEST(VerdictRow, ReadsBackAndFitsTheSchema) {
  const Verdict v = failing();
  nlohmann::json row = to_json(v);
  EXPECT_EQ(row.at("first").at("index"), nlohmann::json({1, 0, 77}));
  const Verdict back = verdict_from_json(row);
  EXPECT_EQ(to_json(back), row);
  row["kind"] = "result";
  EXPECT_NO_THROW(check_schema(row, "result.schema.json", "row"));
  row["colour"] = "red";
  EXPECT_THROW(check_schema(row, "result.schema.json", "row"), InputError) << "the schema is closed";
}

TEST(VerdictRow, NumbersThatAreNoneSurvive) {
  Verdict v = failing();
  v.used = std::numeric_limits<double>::infinity();
  v.first->got = std::nan("");
  nlohmann::json row = nlohmann::json::parse(to_json(v).dump());
  const Verdict back = verdict_from_json(row);
  EXPECT_TRUE(std::isinf(back.used));
  EXPECT_TRUE(std::isnan(back.first->got));
  row["kind"] = "result";
  EXPECT_NO_THROW(check_schema(row, "result.schema.json", "row"));
}

TEST(VerdictRow, EveryStatusAndReasonHasAName) {
  for (const char* name : {"PASS", "MARGINAL", "FAIL", "ERROR", "CRASH", "TIMEOUT", "OOM", "FALLBACK", "HOLLOW",
                           "NO_GOLDEN", "STALE", "MISSING", "SKIP", "WAIVED", "FLAKY", "UNEXPECTED_PASS", "NOT_RUN"})
    EXPECT_EQ(status_name(status_from_name(name)), name);
  for (const char* name : {"no_gpu", "not_built", "no_form", "no_model", "no_capability", "memory"})
    EXPECT_EQ(skip_name(skip_from_name(name)), name);
  EXPECT_THROW(status_from_name("GREEN"), InputError);
}

TEST(VerdictRow, TheSignatureIgnoresLastDigits) {
  Verdict a = failing(), b = failing();
  b.first->got = 0.31898;
  EXPECT_EQ(a.signature, signature_of(b));
  b.first->got = 0.5;
  EXPECT_NE(a.signature, signature_of(b)) << "many times worse";
  b = failing();
  b.first->step = 6;
  EXPECT_NE(a.signature, signature_of(b));
}

TEST(Settle, AFindingOutranksAllAndNothingHollowPasses) {
  EXPECT_EQ(settle(true, true, true, 0), Status::kFail);
  EXPECT_EQ(settle(false, true, true, 0), Status::kFallback);
  EXPECT_EQ(settle(false, false, true, 0), Status::kHollow);
  EXPECT_EQ(settle(false, false, false, 0.81), Status::kMarginal);
  EXPECT_EQ(settle(false, false, false, 0.8), Status::kPass);
}

TEST(Fallback, EveryOpNeedsAKernelAndEveryFormItsOwn) {
  const std::vector<std::string> ops{"linear", "ssd"};
  const LegKernels chunked{{}, {"linear_cublaslt_f32@sm_90", "ssd_chunked_f32@sm_90"}};
  EXPECT_EQ(fallback_reason(ops, {chunked}), "");
  EXPECT_NE(fallback_reason(ops, {{{}, {"linear_cublaslt_f32@sm_90"}}}), "");
  EXPECT_NE(fallback_reason({"ssd"}, {{{}, {"ssdx_chunked_f32@sm_90"}}}), "") << "another op with the same beginning";
  LegKernels asked = chunked;
  asked.forms = {{"ssd", "update"}};
  EXPECT_NE(fallback_reason(ops, {chunked, asked}), "") << "asked for update, chunked ran";
  asked.forms = {{"ssd", "chunked"}};
  EXPECT_EQ(fallback_reason(ops, {chunked, asked}), "");
}

TEST(Combine, DifferingStatusesAreFlaky) {
  Verdict pass = failing();
  pass.status = Status::kPass;
  pass.first.reset();
  pass.used = 0.1;
  EXPECT_EQ(combine({pass, failing(), pass}).status, Status::kFlaky);
  EXPECT_NE(combine({pass, failing(), pass}).reason.find("2 PASS, 1 FAIL"), std::string::npos);
  EXPECT_EQ(combine({pass, pass}).status, Status::kPass);
  EXPECT_EQ(combine({pass, pass}).repeats, 2);
  EXPECT_TRUE(combine({pass, pass}).notes.empty());
  Verdict other = pass;
  other.used = 0.2;
  EXPECT_EQ(combine({pass, other}).used, 0.2);
  EXPECT_TRUE(combine({pass, other}).notes.empty());
  other.outputs = "0123456789abcdef";
  EXPECT_EQ(combine({pass, other}).notes.size(), 1U) << "not equal bit for bit, and said so";
}

Verdict with(Status status) {
  Verdict v;
  v.status = status;
  return v;
}

TEST(ExitCode, AsTheHelpSays) {
  EXPECT_EQ(exit_code({with(Status::kPass), with(Status::kMarginal)}, {}, true), kExitAllowed);
  EXPECT_EQ(exit_code({with(Status::kPass), with(Status::kSkip)}, {}, true), kExitAllowed);
  EXPECT_EQ(exit_code({with(Status::kSkip), with(Status::kSkip)}, {}, true), kExitSkipped);
  EXPECT_EQ(exit_code({with(Status::kPass), with(Status::kSkip)}, {Status::kSkip}, true), kExitVerdict);
  EXPECT_EQ(exit_code({}, {}, true), kExitUsage) << "nothing ran is never a pass";
  EXPECT_EQ(exit_code({with(Status::kPass)}, {}, false), kExitHarness);
  for (const Status bad : {Status::kFail, Status::kError, Status::kCrash, Status::kTimeout, Status::kOom,
                           Status::kFallback, Status::kHollow, Status::kNoGolden, Status::kStale, Status::kMissing,
                           Status::kFlaky, Status::kUnexpectedPass, Status::kNotRun})
    EXPECT_EQ(exit_code({with(Status::kPass), with(bad)}, {}, true), kExitVerdict) << status_name(bad);
}

TEST(Console, AFailingRowNamesAllThatIsNeeded) {
  const std::vector<std::string> lines = row_lines(failing(), 9, 20);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].find("first at layers.3.mixer.conv_state [1,0,77] step 5"), std::string::npos) << lines[0];
  for (const char* part : {"expected 0.3125", "got 0.31897", "|diff| 0.0065", "bound 2.1e-05", "(308x)",
                           "84 of 4096 elements", "leg each"})
    EXPECT_NE(lines[1].find(part), std::string::npos) << lines[1] << " lacks " << part;
  EXPECT_EQ(lines[2], "      repeat:  assay run --subject fast --case jamba/cache.splits");
}

TEST(Console, OutsideTheSampleAnyFiniteValueIsExpected) {
  Verdict v = failing();
  v.first->what = "not finite";
  v.first->expected = v.first->got = std::nan("");
  v.first->detail = "expected a finite value, which is outside the golden's sample";
  const std::string line = row_lines(v, 9, 20).at(1);
  EXPECT_NE(line.find("expected a finite value, got nan"), std::string::npos) << line;
  EXPECT_EQ(line.find("expected nan"), std::string::npos) << line;
  EXPECT_NE(line.find("outside the golden's sample"), std::string::npos) << line;
}

TEST(Console, APassShowsTheShareOfTheBound) {
  Verdict v = failing();
  v.status = Status::kPass;
  v.used = 0.043;
  v.seconds = 0.31;
  v.first.reset();
  const std::vector<std::string> lines = row_lines(v, 9, 20);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0], "PASS       fast       jamba/cache.splits      23 probes   used   4 %    0.31 s");
}

TEST(Console, ArgumentsAreQuotedForAShell) {
  EXPECT_EQ(shell_quoted("mamba2/cache.splits"), "mamba2/cache.splits");
  EXPECT_EQ(shell_quoted("my engine's.so"), "'my engine'\\''s.so'");
}

}  // namespace
}  // namespace assay

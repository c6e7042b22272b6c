#include "golden/record.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "golden/child.hpp"
#include "golden/life.hpp"

namespace assay::golden {
namespace {

const std::filesystem::path kRoot = ASSAY_ROOT;

ModelConfig tiny(const std::string& model) { return read_config(kRoot / "cases/models" / model / "tiny.config.json"); }

std::optional<std::filesystem::path> python() {
  try {
    return originals_python(kRoot);
  } catch (const HarnessError&) {
    return std::nullopt;
  }
}

TEST(OriginalsPython, NamesTheWayToGetOne) {
  const char* before = getenv("ASSAY_ORIGINALS_PYTHON");
  const std::string kept = before ? before : "";
  setenv("ASSAY_ORIGINALS_PYTHON", "/no/such/python", 1);
  try {
    originals_python(kRoot);
    ADD_FAILURE() << "an absent interpreter was accepted";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("ci/originals"), std::string::npos);
  }
  before ? setenv("ASSAY_ORIGINALS_PYTHON", kept.c_str(), 1) : unsetenv("ASSAY_ORIGINALS_PYTHON");
}

TEST(Record, RefusesAKindOrInputItDoesNotKnow) {
  const ModelConfig config = tiny("mamba");
  const RecordOptions options{kRoot, "/bin/false", {}};
  EXPECT_THROW(record({&config, {"one"}, "f99"}, options), InputError);
  EXPECT_THROW(record({&config, {"no_such_input"}, "f32"}, options), InputError);
  EXPECT_THROW(record({&config, {}, "f32"}, options), InputError);
}

TEST(Record, AFailedRunOfTheOriginalIsToldWithItsLastLines) {
  const ModelConfig config = tiny("mamba");
  try {
    record({&config, {"one"}, "f32"}, {kRoot, "/bin/cat", {}});  // prints the script, then fails on --export
    ADD_FAILURE() << "a failed run gave goldens";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("exit code 1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("--export"), std::string::npos) << error.what();
  }
}

TEST(Record, TheRecorderPassesItsSelfCheck) {
  const auto interpreter = python();
  if (!interpreter) GTEST_SKIP() << "SKIP(no_originals) ci/originals makes their environment";
  const ChildResult result =
      run_child({interpreter->string(), (kRoot / "golden/record/record.py").string(), "--selfcheck"},
                {{"PYTHONDONTWRITEBYTECODE", "1"}}, nullptr);
  EXPECT_EQ(result.exit_code, 0);
  ASSERT_FALSE(result.tail.empty());
  EXPECT_EQ(result.tail.back(), "selfcheck: all right");
}

TEST(Record, GivesACurrentGoldenOfEveryProbe) {
  const auto interpreter = python();
  if (!interpreter) GTEST_SKIP() << "SKIP(no_originals) ci/originals makes their environment";
  const ModelConfig config = tiny("mamba2");
  const std::vector<Golden> goldens = record({&config, {"one", "greedy5", "beams5"}, "f32"}, {kRoot, *interpreter, {}});
  ASSERT_EQ(goldens.size(), 3u);
  for (const Golden& golden : goldens) {
    EXPECT_EQ(stale_reason(golden, config), "");
    std::vector<std::string> wanted, held;
    for (const ProbeSpec& probe : model_spec("mamba2").probes(config))
      if (!probe.is_state && (!golden.is_logits_only || probe.name == "logits")) wanted.push_back(probe.name);
    for (const Record& probe : golden.probes) held.push_back(probe.name);
    EXPECT_EQ(held, wanted);
    // A float64 run that rounds to float32 somewhere would have floors of zero or none.
    for (const Record& probe : golden.probes)
      if (probe.name != "embed")
        for (const float floor : probe.floor) {
          EXPECT_GT(floor, 0.f) << probe.name;
          EXPECT_LT(floor, 1e-4f * (1 + probe.scale)) << probe.name;
        }
  }
  // The first step's best sum is that of the greedy token after the prompt: the margin in it is the logits' gap.
  ASSERT_TRUE(goldens[2].beams);
  const BeamStep& first = goldens[2].beams->steps.at(0);
  EXPECT_NEAR(first.log_probs[0] - first.log_probs[1], goldens[2].gap.back(), 1e-5);
}

TEST(Record, GivesTheOtherKindsOnTheWeightsTheyMake) {
  const auto interpreter = python();
  if (!interpreter) GTEST_SKIP() << "SKIP(no_originals) ci/originals makes their environment";
  const ModelConfig config = tiny("mamba");
  const Golden exact = read_golden(golden_file(kRoot, "mamba", "tiny", "other21", "f32"));
  for (const char* kind : {"bf16", "nf4dq"}) {
    const std::vector<std::string> unquantized =
        std::string(kind) == "bf16" ? std::vector<std::string>{} : std::vector<std::string>{"dt_proj"};
    const Golden golden = record({&config, {"other21"}, kind, unquantized}, {kRoot, *interpreter, {}}).at(0);
    EXPECT_EQ(stale_reason(golden, config, unquantized), "");
    EXPECT_EQ(golden.kind, kind);
    // Rounding moves the logits by far more than a floor, and computing in 16 bit moves them again.
    const Record &before = exact.probes.back(), &after = golden.probes.back();
    double moved = 0, error = 0;
    for (size_t i = 0; i < before.values.size(); ++i)
      moved = std::max(moved, std::abs(double{before.values[i]} - after.values[i]));
    for (const float value : golden.errors.back().logits) error = std::max(error, double{value});
    EXPECT_GT(moved, 1e-3) << kind;
    EXPECT_GT(error, 1e-2) << kind;
    for (const auto& [name, digest] : golden.weight_digests) {
      const bool is_linear =
          name.ends_with("in_proj.weight") || name.ends_with("x_proj.weight") || name.ends_with("out_proj.weight");
      const bool is_changed = digest != exact.weight_digests.at(name);
      if (!golden.quantization) continue;
      EXPECT_EQ(is_changed, is_linear) << name;
      EXPECT_EQ(golden.quantization->weights.contains(name), is_linear) << name;
    }
  }
}

TEST(Record, AModuleThatTheOriginalReadsItselfMustBeLeftOut) {
  const auto interpreter = python();
  if (!interpreter) GTEST_SKIP() << "SKIP(no_originals) ci/originals makes their environment";
  const ModelConfig config = tiny("mamba");
  try {
    record({&config, {"one"}, "nf4", {}}, {kRoot, *interpreter, {}});
    ADD_FAILURE() << "dt_proj was quantised and read all the same";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("unquantized"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::golden

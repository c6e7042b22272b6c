#include "golden/life.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "cases/spec/error.hpp"
#include "cases/spec/export.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "golden/current_weights.hpp"

namespace assay::golden {
namespace {

namespace fs = std::filesystem;

// A repository of one config with inputs two (cited by a case), spare (cited by none) and before (cited as an earlier
// request).
class Life : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay-life-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    ModelConfig config{.model = "mamba", .name = "tiny", .digest = "now"};
    for (const char* name : {"two", "spare", "before"}) config.inputs[name] = {name, {3, 4}, 0};
    config.state_cuts = {1, 2, 9};
    config.weights.kind = WeightsRecipe::Kind::kCheckpoint;  // of no folder: there is nothing to look at
    config.fields = read_config(fs::path(ASSAY_ROOT) / "cases/models/mamba/tiny.config.json").fields;
    corpus_.configs["mamba/tiny"] = config;
    Case test_case{.id = "mamba/logits.edges", .model = "mamba", .config = "tiny", .kind = "f32"};
    test_case.legs = {{.name = "whole", .rows = {{.input = "two"}, {.input = "two", .length = 1}}},
                      {.name = "after", .rows = {{.input = "two"}}, .before = Leg::Before{.input = "before"}}};
    corpus_.cases = {test_case};
  }
  void TearDown() override { fs::remove_all(root_); }

  static Golden golden(const std::string& input) {
    Golden made{.model = "mamba", .config = "tiny", .input = input, .kind = "f32", .config_digest = "now"};
    made.original = {{"package", "transformers"}, {"version", "5.24.0"}};
    made.prompt = made.tokens = {3, 4};
    made.gap = {1, 1};
    const Record logits{.name = "logits",
                        .shape = {1},
                        .positions = 2,
                        .values = {1, 2},
                        .norm = {1, 2},
                        .floor = {0, 0},
                        .norm_floor = {0, 0},
                        .scale = 2};
    made.probes = {logits};
    for (const int64_t cut : {1, 2})
      made.states.push_back({cut,
                             {{.name = "layers.0.mixer.conv_state",
                               .shape = {1},
                               .positions = 1,
                               .values = {1},
                               .norm = {1},
                               .floor = {0},
                               .norm_floor = {0},
                               .scale = 1}}});
    return made;
  }
  void commit(const std::string& input) {
    write_pending(root_, golden(input));
    ASSERT_EQ(accept(root_, name(input)), Outcome::kDone);
  }
  static RunName name(const std::string& input) { return {"mamba", "tiny", input, "f32"}; }
  GoldenState row(const std::string& input) {
    for (const GoldenState& found : state(corpus_, root_))
      if (found.name == name(input)) return found;
    ADD_FAILURE() << "no row for " << input;
    return {};
  }

  fs::path root_;
  Corpus corpus_;
};

TEST(RunNameTest, ComesFromAPlaceOfTheRightFormOnly) {
  const auto name = run_name("mamba2/tiny.prompt49.f32");
  ASSERT_TRUE(name);
  EXPECT_EQ(*name, (RunName{"mamba2", "tiny", "prompt49", "f32"}));
  EXPECT_EQ(name->id(), "mamba2/tiny.prompt49.f32");
  for (const char* wrong : {"", "mamba2", "mamba2/tiny", "mamba2/tiny.f32", "/tiny.one.f32", "mamba2/.one.f32"})
    EXPECT_FALSE(run_name(wrong)) << wrong;
}

TEST_F(Life, NeededIsEachCitedRunOnceWithItsCases) {
  const auto needs = needed(corpus_, {&corpus_.cases[0]});
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].name, name("before"));
  EXPECT_EQ(needs[1].name, name("two"));
  EXPECT_EQ(needs[1].cases, std::vector<std::string>{"mamba/logits.edges"});
}

TEST_F(Life, RunsFromMissingOverPendingToCommitted) {
  EXPECT_EQ(row("two").standing, Standing::kMissing);
  const fs::path file = write_pending(root_, golden("two"));
  EXPECT_EQ(file, root_ / "golden/pending/mamba/tiny.two.f32.json");
  EXPECT_TRUE(row("two").pending);
  EXPECT_EQ(row("two").standing, Standing::kMissing);
  EXPECT_EQ(review(root_, name("two")).kind, Class::kNew);

  EXPECT_EQ(accept(root_, name("two")), Outcome::kDone);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(row("two").pending);
  EXPECT_EQ(row("two").standing, Standing::kCommitted);
  EXPECT_EQ(row("two").bytes, fs::file_size(committed_file(root_, name("two"))));
  EXPECT_EQ(read_file(committed_file(root_, name("two"))), format(golden("two")));
}

TEST_F(Life, ASecondAcceptChangesNothing) {
  commit("two");
  EXPECT_EQ(accept(root_, name("two")), Outcome::kNothingPending);
  EXPECT_EQ(row("two").standing, Standing::kCommitted);
}

TEST_F(Life, AcceptReplacesAndReviewSaysWhatChanges) {
  commit("two");
  Golden other = golden("two");
  other.probes[0].values[1] = other.probes[0].norm[1] = 3;
  write_pending(root_, other);
  EXPECT_EQ(review(root_, name("two")).kind, Class::kDifferent);
  EXPECT_EQ(read_golden(committed_file(root_, name("two"))).probes[0].values[1], 2);
  EXPECT_EQ(accept(root_, name("two")), Outcome::kDone);
  EXPECT_EQ(read_golden(committed_file(root_, name("two"))).probes[0].values[1], 3);
  EXPECT_THROW(review(root_, name("two")), InputError);
}

TEST_F(Life, RejectDeletesThePendingFileAlone) {
  commit("two");
  write_pending(root_, golden("two"));
  EXPECT_EQ(reject(root_, name("two")), Outcome::kDone);
  EXPECT_EQ(reject(root_, name("two")), Outcome::kNothingPending);
  EXPECT_EQ(row("two").standing, Standing::kCommitted);
}

TEST_F(Life, AcceptRefusesADamagedPendingFileAndKeepsTheCommittedOne) {
  commit("two");
  std::ofstream(write_pending(root_, golden("two"))) << "{}";
  EXPECT_THROW(accept(root_, name("two")), InputError);
  EXPECT_EQ(row("two").standing, Standing::kCommitted);
}

TEST_F(Life, AGoldenThatNoCaseCitesIsUnreferenced) {
  commit("spare");
  EXPECT_EQ(row("spare").standing, Standing::kUnreferenced);
  write_pending(root_, golden("spare"));
  fs::remove(committed_file(root_, name("spare")));
  EXPECT_EQ(row("spare").standing, Standing::kUnreferenced);
  EXPECT_TRUE(row("spare").pending);
}

TEST_F(Life, AChangedConfigMakesItsGoldensStale) {
  commit("two");
  ModelConfig& config = corpus_.configs.at("mamba/tiny");
  const ModelConfig before = config;
  config.digest = "later";
  EXPECT_EQ(row("two").standing, Standing::kStale);
  config = before;
  config.inputs["two"].tokens = {3, 5};
  EXPECT_EQ(row("two").standing, Standing::kStale);
  config = before;
  config.inputs["two"].greedy = 1;
  EXPECT_EQ(row("two").standing, Standing::kStale);
  config = before;
  config.state_cuts = {2};
  EXPECT_EQ(row("two").standing, Standing::kStale);
  config = before;
  config.state_cuts = {1, 2, 77};  // beyond the run: not recorded
  EXPECT_EQ(row("two").standing, Standing::kCommitted);
}

TEST_F(Life, OtherDrawnWeightsOfTheSameConfigMakeItStale) {
  commit("two");
  ModelConfig& config = corpus_.configs.at("mamba/tiny");
  config.weights = {.kind = WeightsRecipe::Kind::kSynthetic, .seed = 1};
  EXPECT_EQ(row("two").standing, Standing::kStale);  // it holds no digest of any weight
  EXPECT_NE(row("two").reason.find("recorded without the weight"), std::string::npos) << row("two").reason;
}

TEST_F(Life, ACheckpointIsTheRecordedOneOrNotLookedAt) {
  ModelConfig& config = corpus_.configs.at("mamba/tiny");
  Golden made = golden("two");
  for (const WeightSpec& spec : model_spec("mamba").weights(config))
    made.weight_digests[spec.name] = "0123456789abcdef";
  write_pending(root_, made);
  ASSERT_EQ(accept(root_, name("two")), Outcome::kDone);
  const auto expect = [&](Standing standing, const std::string& reason) {
    const GoldenState seen = row("two");
    EXPECT_EQ(seen.standing, standing) << seen.reason;
    EXPECT_NE(seen.reason.find(reason), std::string::npos) << seen.reason;
  };
  expect(Standing::kCommitted, "not looked at");
  config.weights.directory = root_;
  expect(Standing::kStale, "cannot be read");
  export_model(read_config(fs::path(ASSAY_ROOT) / "cases/models/mamba/tiny.config.json"), root_);
  expect(Standing::kStale, "recorded from another checkpoint (backbone.embeddings.weight");
  config.fields["vocab_size"] = kMostListedElements;
  expect(Standing::kCommitted, "not looked at");
}

TEST_F(Life, CasesOfOneRunLeaveTheSameModulesUnquantized) {
  Case& first = corpus_.cases[0];
  first.kind = first.quantization = "nf4";
  first.unquantized = {"dt_proj"};
  corpus_.cases.push_back(first);
  corpus_.cases[1].id = "mamba/int4.other";
  const auto needs = needed(corpus_, {&corpus_.cases[0], &corpus_.cases[1]});
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].unquantized, std::vector<std::string>{"dt_proj"});
  corpus_.cases[1].unquantized = {};
  try {
    needed(corpus_, {&corpus_.cases[0], &corpus_.cases[1]});
    ADD_FAILURE() << "one run was asked for in two ways";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("mamba/int4.other"), std::string::npos) << error.what();
  }
}

TEST_F(Life, FilesThatAreNoGoldensAreShown) {
  commit("two");
  std::ofstream(root_ / "golden/models/mamba/notes.json") << "{}";
  std::ofstream(committed_file(root_, name("two"))) << "{}";
  const auto rows = state(corpus_, root_);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const GoldenState& one) { return one.standing == Standing::kUnreadable; }),
            2);
  EXPECT_EQ(row("two").standing, Standing::kUnreadable);
}

}  // namespace
}  // namespace assay::golden

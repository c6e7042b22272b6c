// Where a leg's weights come from, and that no temporary folder is left however a case ends.
#include "runners/leg_models.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cases/spec/error.hpp"
#include "runners/testing/runs.hpp"
#include "runners/testing/store_subject.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::Ended;
using testing::Runs;
using testing::shell;

constexpr Leg::From kForms[] = {Leg::From::kMemory, Leg::From::kSafetensors, Leg::From::kSharded, Leg::From::kBin,
                                Leg::From::kShardedBin};

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

class LegModelsTest : public ::testing::Test {
 protected:
  LegModelsTest() { setenv("TMPDIR", folder.path().c_str(), 1); }
  ~LegModelsTest() override {
    if (before)
      setenv("TMPDIR", before->c_str(), 1);
    else
      unsetenv("TMPDIR");
  }

  static Leg leg(Leg::From from, Residency residency = Residency::kResident) {
    Leg leg;
    leg.from = from;
    leg.residency = residency;
    return leg;
  }

  std::optional<std::string> before =
      std::getenv("TMPDIR") ? std::optional<std::string>(std::getenv("TMPDIR")) : std::nullopt;
  testing::Folder folder;
  ModelConfig config = testing::small_config();
};

TEST_F(LegModelsTest, EveryFormHoldsTheSameWeights) {
  LegModels models(testing::tiny_subject());
  const std::vector<WeightGroup> groups = weight_groups(config);
  std::map<std::string, std::vector<float>> expected;
  for (const Leg::From from : kForms) {
    const LegModels::Loaded loaded = models.get(config, leg(from), {});
    EXPECT_TRUE(loaded.is_new);
    EXPECT_FALSE(loaded.reads.after_load()) << "each tensor is read once";
    for (const WeightGroup& group : groups)
      for (const std::string& name : group.weights) {
        const HostTensor weight = loaded.model.weight(name);
        const std::vector<float> values(weight.values<float>().begin(), weight.values<float>().end());
        if (from == Leg::From::kMemory) expected[name] = values;
        EXPECT_EQ(values, expected[name]) << name << " in form " << static_cast<int>(from);
      }
    const bool has_folder = from != Leg::From::kMemory;
    ASSERT_EQ(entries(folder.path()), has_folder ? 1U : 0U) << "one checkpoint at a time";
    if (!has_folder) continue;
    size_t shards = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::directory_iterator(folder.path())->path())) {
      const std::string ending = entry.path().extension().string();
      shards += ending == ".safetensors" || ending == ".bin";
    }
    const bool is_sharded = from == Leg::From::kSharded || from == Leg::From::kShardedBin;
    EXPECT_EQ(shards > 2, is_sharded);
  }
}

TEST_F(LegModelsTest, ACheckpointIsWrittenOnceForResidentAndOffloaded) {
  testing::StoreSubject subject(testing::HouseFault::kNone);
  {
    LegModels models(subject);
    models.get(config, leg(Leg::From::kSharded), {});
    const fs::path made = fs::directory_iterator(folder.path())->path();
    EXPECT_FALSE(models.get(config, leg(Leg::From::kSharded), {}).is_new);
    EXPECT_TRUE(models.get(config, leg(Leg::From::kSharded, Residency::kOffloaded), {}).is_new);
    models.drop();
    EXPECT_TRUE(models.get(config, leg(Leg::From::kSharded, Residency::kOffloaded), {}).is_new);
    EXPECT_TRUE(fs::exists(made));
    EXPECT_EQ(entries(folder.path()), 1U);
  }
  EXPECT_EQ(entries(folder.path()), 0U);
}

TEST_F(LegModelsTest, AFolderThatCannotBeMadeIsTheHarnesss) {
  setenv("TMPDIR", (folder.path() / "nowhere").c_str(), 1);
  LegModels models(testing::tiny_subject());
  EXPECT_THROW(models.get(config, leg(Leg::From::kSafetensors), {}), ScratchError);
}

TEST_F(Runs, NoTemporaryFolderIsLeftHoweverACaseEnds) {
  const fs::path temporary = root() / "temporary";
  fs::create_directories(temporary);
  write_file(root() / "cases/models/mamba/offload.files.json", R"({"schema": "assay.case/1", "config": "small",
    "tier": "smoke", "dtype": "float32", "why": "For tests of the runner.", "legs": [
      {"name": "files", "rows": [{"input": "a"}], "from": "sharded"}]})");
  const auto run_with = [&](const fs::path& tmpdir, const std::string& fault, const std::string& arguments = "") {
    return shell("TMPDIR=" + shell_quoted(tmpdir.string()) + " ASSAY_TINY_FAULT=" + fault + " " +
                 tiny("--case mamba/offload.files " + arguments));
  };
  for (const auto& [fault, status] : std::map<std::string, Status>{{"none", Status::kPass},
                                                                   {"nan", Status::kFail},
                                                                   {"throw", Status::kError},
                                                                   {"oom", Status::kOom},
                                                                   {"crash", Status::kCrash},
                                                                   {"hang", Status::kTimeout}}) {
    const Ended ended = run_with(temporary, fault, fault == "hang" ? "--timeout 2" : "");
    EXPECT_EQ(rows().at("mamba/offload.files").status, status) << fault << ": " << ended.text;
    EXPECT_EQ(entries(temporary), 0U) << fault;
  }
  expect_ends(run_with(root() / "nowhere", "none"), 1, {"ERROR", "temporary folder", "set TMPDIR"});
  EXPECT_EQ(rows().at("mamba/offload.files").status, Status::kError);
}

TEST_F(Runs, WithoutATemporaryFolderTheOtherCasesRunUnlessThreeFollowOneAnother) {
  const auto run_without = [&] {
    return shell("TMPDIR=" + shell_quoted((root() / "nowhere").string()) + " " + tiny("mamba"));
  };
  const auto add = [&](const std::string& name) {
    write_file(root() / ("cases/models/mamba/" + name + ".json"), R"({"schema": "assay.case/1", "config": "small",
      "tier": "smoke", "dtype": "float32", "why": "For tests of the runner.", "legs": [
        {"name": "files", "rows": [{"input": "a"}], "from": "safetensors"}]})");
  };
  add("batch.files");
  add("offload.first");
  add("offload.second");
  expect_ends(run_without(), 1, {"set TMPDIR"});
  std::map<Status, int> counts;
  for (const auto& [id, row] : rows()) ++counts[row.status];
  EXPECT_EQ(counts, (std::map<Status, int>{{Status::kPass, 4}, {Status::kError, 3}}));
  add("offload.third");
  expect_ends(run_without(), 3, {"set TMPDIR"});
  EXPECT_EQ(rows().at("mamba/logits.b").status, Status::kPass) << "what ran before keeps its row";
}

}  // namespace
}  // namespace assay

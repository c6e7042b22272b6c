#include "runners/group_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "cases/spec/error.hpp"
#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Runs;
namespace fs = std::filesystem;

class Pool : public ::testing::Test {
 protected:
  // Groups of two cases each; no worker is started, since the callback of the tests does not ask for one.
  std::vector<CaseGroup> groups(int count, int64_t limit) {
    std::vector<CaseGroup> result;
    SubjectSettings settings;
    settings.executable = ASSAY_EXECUTABLE;
    cases_.resize(2);
    cases_[0].id = "m/first.a";
    cases_[1].id = "m/second.b";
    for (int i = 0; i < count; ++i)
      result.push_back({std::make_unique<SubjectProcess>(ASSAY_TINY_SUBJECT, settings, interrupts_),
                        {&cases_[0], &cases_[1]},
                        limit});
    return result;
  }
  // The most callbacks that ran at one time.
  int most_at_once(int64_t jobs, int64_t limit) {
    std::atomic<int> running = 0, most = 0;
    run_groups(groups(4, limit), jobs, interrupts_, [&](SubjectProcess&, const Case&) {
      const int now = ++running;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      --running;
    });
    return most;
  }

  Interrupts interrupts_;
  std::vector<Case> cases_;
};

TEST_F(Pool, RunsSoManyGroupsAtOnce) {
  EXPECT_EQ(most_at_once(3, 8), 3);
  EXPECT_EQ(most_at_once(1, 8), 1);
}

TEST_F(Pool, AnAcceleratedSubjectsGroupsRunOneAfterAnother) { EXPECT_EQ(most_at_once(4, 1), 1); }

TEST_F(Pool, AGroupRunsInOrderInOneWorker) {
  std::mutex mutex;
  std::map<const SubjectProcess*, std::vector<std::string>> seen;
  run_groups(groups(3, 8), 2, interrupts_, [&](SubjectProcess& worker, const Case& test_case) {
    const std::lock_guard lock(mutex);
    seen[&worker].push_back(test_case.id);
  });
  ASSERT_EQ(seen.size(), 3U);
  for (const auto& [worker, ids] : seen) EXPECT_EQ(ids, (std::vector<std::string>{"m/first.a", "m/second.b"}));
}

TEST_F(Pool, AFailureStopsTheOthersAndIsThrown) {
  std::atomic<int> calls = 0;
  EXPECT_THROW(run_groups(groups(50, 50), 2, interrupts_,
                          [&](SubjectProcess&, const Case&) {
                            ++calls;
                            throw HarnessError("disk", "is full");
                          }),
               HarnessError);
  EXPECT_LE(calls, 2);
  EXPECT_TRUE(interrupts_.is_stopped());
  EXPECT_EQ(interrupts_.signal(), 0);
}

TEST_F(Runs, FamiliesRunBesideEachOther) {
  add_mamba2();
  // mamba comes first and hangs: a row of mamba2 can only come from another worker at the same time.
  const pid_t child = start("mamba mamba2 --jobs 2", "hang");
  EXPECT_TRUE(appears("\"case\":\"mamba2/logits.a\",\"case_digest\""));
  kill(child, SIGTERM);
  EXPECT_EQ(wait_for(child), 3);
  const auto seen = rows();
  EXPECT_EQ(seen.at("mamba2/logits.a").status, Status::kSkip);
  EXPECT_EQ(seen.at("mamba/cache.split").status, Status::kNotRun);
  EXPECT_FALSE(read_results(results()).complete);
}

TEST_F(Runs, OneFamilyThatCrashesLeavesTheOthersAlone) {
  add_mamba2();
  const auto ended = run("mamba mamba2 --jobs 2", "crash");
  EXPECT_EQ(ended.code, 1) << ended.text;
  const auto seen = rows();
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen.at("mamba2/logits.a").status, Status::kSkip);
  EXPECT_EQ(seen.at("mamba/logits.b").status, Status::kCrash);
  EXPECT_TRUE(read_results(results()).complete);
}

TEST_F(Runs, OneJobRunsOneFamilyAfterAnother) {
  add_mamba2();
  EXPECT_EQ(run("mamba mamba2 --jobs 1").code, 0);
  const ResultFile file = read_results(results());
  ASSERT_EQ(file.rows.size(), 5U);
  EXPECT_EQ(file.rows.back().case_id, "mamba2/logits.a");
  EXPECT_EQ(file.run.at("jobs"), 1);
  EXPECT_EQ(run("mamba --jobs 0").code, 2);
}

}  // namespace
}  // namespace assay

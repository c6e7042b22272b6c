// Sessions with a static cache: their limit, their memory, and steps as replays of a graph.
#include "fast/models/step_graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cases/spec/error.hpp"
#include "fast/models/testing/session_on_device.hpp"

namespace assay::fast {
namespace {

class StaticCacheOnDevice : public SessionOnDevice {};

TEST_P(StaticCacheOnDevice, AStaticCacheKeepsItsLimitAndItsMemory) {
  const auto session = start(1, CacheKind::kStatic, {}, 6);
  session->forward(call(1, 0, 3));
  session->forward(call(1, 3, 1));
  const int64_t allocations = model->memory().allocations;
  session->forward(call(1, 4, 1));
  session->forward(call(1, 5, 1));
  EXPECT_EQ(model->memory().allocations, allocations);
  EXPECT_THROW(session->forward(call(1, 6, 1)), InputError);
  session->reset();
  EXPECT_NO_THROW(session->forward(call(1, 0, 6)));
}

TEST_P(StaticCacheOnDevice, StepsThroughAStaticCacheAreReplaysAndEqualTheEagerOnes) {
  const auto is_replay = [](const Session& session) {
    const std::vector<std::string> kernels = session.kernels();
    return std::find(kernels.begin(), kernels.end(), kStepGraphId) != kernels.end();
  };
  const auto replayed = start(2, CacheKind::kStatic, {}, 40);
  for (int64_t length : {20, 9}) {  // the second request is shorter
    const auto eager = start(2, CacheKind::kDynamic);
    replayed->reset();
    eager->forward(call(2, 0, 5));
    replayed->forward(call(2, 0, 5));
    EXPECT_FALSE(is_replay(*replayed));
    for (int64_t first = 5; first < length; ++first) {
      const Trace a = eager->forward(call(2, first, 1)), b = replayed->forward(call(2, first, 1));
      EXPECT_FALSE(is_replay(*eager));
      EXPECT_TRUE(is_replay(*replayed));
      ASSERT_EQ(a.probes.size(), b.probes.size());
      for (size_t i = 0; i < a.probes.size(); ++i) {
        EXPECT_EQ(a.probes[i].name, b.probes[i].name);
        for (int64_t k = 0; k < a.probes[i].value.count(); ++k)
          ASSERT_EQ(a.probes[i].value.at(k), b.probes[i].value.at(k)) << a.probes[i].name << " of column " << first;
      }
    }
    const std::vector<NamedTensor> a = eager->states(), b = replayed->states();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      for (int64_t k = 0; k < a[i].value.count(); ++k) ASSERT_EQ(a[i].value.at(k), b[i].value.at(k)) << a[i].name;
  }
}

TEST_P(StaticCacheOnDevice, AThousandReplaysTakeNoMemory) {
  const auto session = start(1, CacheKind::kStatic, {}, 1003);
  session->forward(call(1, 0, 2));
  const auto step = [&] {
    Call one = call(1, session->length(), 1);
    one.capture = false;
    session->forward(one);
  };
  step();
  const MemoryUse before = model->memory();
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(model->memory().allocations, before.allocations);
  EXPECT_EQ(model->memory().current_bytes, before.current_bytes);
}

INSTANTIATE_TEST_SUITE_P(Families, StaticCacheOnDevice, testing::ValuesIn(network_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace assay::fast

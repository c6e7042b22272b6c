// Probes, states and kernels of a session against the tables of its model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "cases/spec/model_spec.hpp"
#include "fast/models/session.hpp"
#include "fast/models/testing/session_on_device.hpp"

namespace assay::fast {
namespace {

class SessionTablesOnDevice : public SessionOnDevice {};

TEST_P(SessionTablesOnDevice, ProbesHaveTheTablesNamesShapesAndOrder) {
  const auto session = start(2, CacheKind::kDynamic);
  const Trace trace = session->forward(call(2, 0, 5));
  std::vector<std::string> expected, got;
  for (const ProbeSpec& spec : model_spec(config.model).probes(config)) {
    if (spec.is_state) continue;
    expected.push_back(spec.name);
    Shape shape = {2, 5};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    const HostTensor* probe = trace.find(spec.name);
    if (probe == nullptr) continue;
    EXPECT_EQ(probe->shape(), shape) << spec.name;
    for (float value : probe->values<float>()) ASSERT_TRUE(std::isfinite(value)) << spec.name;
  }
  for (const NamedTensor& probe : trace.probes) got.push_back(probe.name);
  EXPECT_EQ(got, expected);
}

TEST_P(SessionTablesOnDevice, StatesHaveTheTablesNamesAndShapes) {
  const auto session = start(3, CacheKind::kDynamic);
  session->forward(call(3, 0, 2));
  const std::vector<NamedTensor> states = session->states();
  size_t expected = 0;
  for (const ProbeSpec& spec : model_spec(config.model).probes(config)) {
    if (!spec.is_state) continue;
    ++expected;
    Shape shape = {3};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    if (!spec.follows.empty()) shape = {3, spec.shape[0], 2, spec.shape[1]};
    const auto state =
        std::find_if(states.begin(), states.end(), [&](const NamedTensor& one) { return one.name == spec.name; });
    ASSERT_NE(state, states.end()) << spec.name;
    EXPECT_EQ(state->value.shape(), shape) << spec.name;
  }
  EXPECT_EQ(expected, states.size());
}

// A kernel may hold an op between others.
TEST_P(SessionTablesOnDevice, OneKernelAtLeastForEachOp) {
  const std::multimap<std::string, std::string> held_by = {{"causal_conv1d", "short_conv"},
                                                           {"gate", "short_conv"},
                                                           {"gate", "silu_gate"},
                                                           {"gated_rms_norm", "rms_norm_gated"}};
  const auto session = start(1, CacheKind::kDynamic);
  for (int64_t columns : {7, 1}) {
    session->forward(call(1, session->length(), columns));
    for (const std::string& op : model_spec(config.model).ops(config)) {
      std::vector<std::string> names = {op};
      const auto [begin, end] = held_by.equal_range(op);
      for (auto held = begin; held != end; ++held) names.push_back(held->second);
      bool is_there = false;
      for (const std::string& kernel : session->kernels())
        for (const std::string& name : names) is_there = is_there || kernel.starts_with(name + "_");
      EXPECT_TRUE(is_there) << op;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SessionTablesOnDevice, testing::ValuesIn(network_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace assay::fast

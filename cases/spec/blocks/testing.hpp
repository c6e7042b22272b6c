// What the tests of blocks compare tables with.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct NamedShape {
  std::string name;
  Shape shape;
};

inline void expect_names(const WeightTable& table, const std::vector<NamedShape>& expected) {
  ASSERT_EQ(table.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(table[i].name, expected[i].name);
    EXPECT_EQ(table[i].shape, expected[i].shape) << expected[i].name;
  }
}

inline void expect_names(const std::vector<ProbeSpec>& probes, const std::vector<NamedShape>& expected) {
  ASSERT_EQ(probes.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(probes[i].name, expected[i].name);
    EXPECT_EQ(probes[i].shape, expected[i].shape) << expected[i].name;
    EXPECT_EQ(probes[i].layer, 3) << expected[i].name;
  }
}

template <class BlockShape>
WeightTable weights_of(const BlockShape& shape) {
  WeightTable table;
  describe_weights(table, "l.", shape);
  return table;
}

// Of layer 3, under "p.".
template <class BlockShape>
std::vector<ProbeSpec> probes_of(const BlockShape& shape) {
  ProbeTable table;
  describe_probes(table, "p.", 3, shape);
  return table.take();
}

}  // namespace assay

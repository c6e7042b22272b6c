#include "golden/vacuity.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace assay::golden {
namespace {

// Two probes of 3 positions, 2 elements each.
Golden sound() {
  Golden golden;
  golden.prompt = golden.tokens = {1, 2, 3};
  for (const char* name : {"embed", "logits"})
    golden.probes.push_back({.name = name,
                             .shape = {2},
                             .positions = 3,
                             .values = {3, 4, 0, 2, 6, 8},
                             .norm = {5, 2, 10},
                             .floor = {0, 0, 0},
                             .norm_floor = {0, 0, 0},
                             .scale = 8});
  return golden;
}

TEST(Vacuity, SoundGoldenProvesSomething) { EXPECT_EQ(vacuity(sound()), ""); }

TEST(Vacuity, ZeroThroughout) {
  Golden golden = sound();
  golden.probes[1].values.assign(6, 0);
  golden.probes[1].norm.assign(3, 0);
  EXPECT_EQ(vacuity(golden), "logits is zero throughout");
}

TEST(Vacuity, MoreThanHalfZeros) {
  Golden golden = sound();
  golden.probes[0].values = {3, 0, 0, 0, 6, 8};  // half is allowed
  EXPECT_EQ(vacuity(golden), "");
  golden.probes[0].values = {3, 0, -0.f, 0, 6, 0};
  EXPECT_EQ(vacuity(golden), "4 of 6 recorded values of embed are exactly 0");
}

TEST(Vacuity, SparseProbesMayBeMostlyZeroButNotAltogether) {
  Golden golden = sound();
  golden.probes[0].values = {3, 0, 0, 0, 0, 0};
  golden.probes[0].is_sparse = true;
  EXPECT_EQ(vacuity(golden), "");
  golden.probes[0].is_sparse = false;
  EXPECT_EQ(vacuity(golden), "5 of 6 recorded values of embed are exactly 0");
  golden.probes[0].is_sparse = true;
  golden.probes[0].values.assign(6, 0);
  golden.probes[0].norm.assign(3, 0);
  EXPECT_EQ(vacuity(golden), "embed is zero throughout");
}

TEST(Vacuity, ConstantOnlyWhereTokensDiffer) {
  Golden golden = sound();
  golden.probes[1].values = {3, 4, 3, 4, 3, 4};
  golden.probes[1].norm = {5, 5, 5};
  EXPECT_EQ(vacuity(golden), "logits is the same at all 3 positions, though the tokens differ");
  golden.tokens = {1, 1, 1};
  EXPECT_EQ(vacuity(golden), "");
  golden.tokens = {1, 2, 3};
  golden.probes[1].norm[2] = 6;  // it moves outside the sample
  EXPECT_EQ(vacuity(golden), "");
}

TEST(Vacuity, NotFinite) {
  Golden golden = sound();
  golden.probes[0].norm[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(vacuity(golden), "embed holds values that are not finite");
}

TEST(Vacuity, StatesMayBeZero) {
  Golden golden = sound();
  golden.states.push_back({.cut = 1, .states = {golden.probes[0]}});
  golden.states[0].states[0].values.assign(6, 0);
  golden.states[0].states[0].norm.assign(3, 0);
  EXPECT_EQ(vacuity(golden), "");
}

}  // namespace
}  // namespace assay::golden

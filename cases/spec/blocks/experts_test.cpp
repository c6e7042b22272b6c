#include "cases/spec/blocks/experts.hpp"

#include "cases/spec/blocks/testing.hpp"

namespace assay {
namespace {

ExpertsShape two() {
  ExpertsShape shape;
  shape.hidden_size = 5;
  shape.width = 7;
  shape.count = 2;
  shape.chosen = 1;
  return shape;
}

TEST(ExpertsTables, OneByOne) {
  ExpertsShape shape = two();
  shape.gate_name = "w1";
  shape.up_name = "w3";
  shape.down_name = "w2";
  shape.has_selection_bias = true;
  expect_names(weights_of(shape), {{"l.gate.weight", {2, 5}},
                                   {"l.expert_bias", {2}},
                                   {"l.experts.0.w1.weight", {7, 5}},
                                   {"l.experts.0.w3.weight", {7, 5}},
                                   {"l.experts.0.w2.weight", {5, 7}},
                                   {"l.experts.1.w1.weight", {7, 5}},
                                   {"l.experts.1.w3.weight", {7, 5}},
                                   {"l.experts.1.w2.weight", {5, 7}}});
  const auto probes = probes_of(shape);
  expect_names(probes, {{"p.router", {2}}, {"p.routing", {2}}, {"p.experts", {5}}});
  EXPECT_TRUE(probes[1].is_sparse);
}

TEST(ExpertsTables, Stacked) {
  ExpertsShape shape = two();
  shape.is_stacked = true;
  shape.router_name = "router.layer.weight";
  shape.gate_name = "input_linear.weight";
  shape.down_name = "output_linear.weight";
  const WeightTable table = weights_of(shape);
  expect_names(table, {{"l.router.layer.weight", {2, 5}},
                       {"l.input_linear.weight", {2, 14, 5}},
                       {"l.output_linear.weight", {2, 5, 7}}});
  EXPECT_EQ(table[1].fan_in, 5);
  EXPECT_EQ(table[2].fan_in, 7);
}

TEST(ExpertsTables, LatentWithoutGate) {
  ExpertsShape shape = two();
  shape.count = 1;
  shape.is_gated = false;
  shape.latent = 3;
  expect_names(weights_of(shape), {{"l.gate.weight", {1, 5}},
                                   {"l.fc1_latent_proj.weight", {3, 5}},
                                   {"l.fc2_latent_proj.weight", {5, 3}},
                                   {"l.experts.0.up_proj.weight", {7, 3}},
                                   {"l.experts.0.down_proj.weight", {3, 7}}});
}

}  // namespace
}  // namespace assay

#include "cases/spec/blocks/feed_forward.hpp"

#include "cases/spec/blocks/testing.hpp"

namespace assay {
namespace {

FeedForwardShape gated() {
  FeedForwardShape shape;
  shape.in_width = 10;
  shape.width = 7;
  shape.hidden_size = 5;
  return shape;
}

TEST(FeedForwardTables, Gated) {
  FeedForwardShape shape = gated();
  shape.has_bias = true;
  expect_names(weights_of(shape), {{"l.gate_proj.weight", {7, 10}},
                                   {"l.gate_proj.bias", {7}},
                                   {"l.up_proj.weight", {7, 10}},
                                   {"l.up_proj.bias", {7}},
                                   {"l.down_proj.weight", {5, 7}},
                                   {"l.down_proj.bias", {5}}});
  const auto probes = probes_of(shape);
  expect_names(probes, {{"p.act", {7}}, {"p.down_proj", {5}}});
  EXPECT_FALSE(probes[0].is_sparse);
}

TEST(FeedForwardTables, FusedUnderItsOwnNames) {
  FeedForwardShape shape = gated();
  shape.is_fused = true;
  shape.gate_name = "input_linear";
  shape.down_name = "output_linear";
  expect_names(weights_of(shape), {{"l.input_linear.weight", {14, 10}}, {"l.output_linear.weight", {5, 7}}});
  shape.adapter_rank = 2;
  WeightTable table;
  describe_adapters(table, "l.", 4, shape);
  expect_names(table, {{"l.input_linear_adapter_list.4.0.weight", {2, 10}},
                       {"l.input_linear_adapter_list.4.1.weight", {14, 2}}});
}

TEST(FeedForwardTables, PlainSquaredReluIsSparse) {
  FeedForwardShape shape = gated();
  shape.is_gated = false;
  shape.activation = Activation::kRelu2;
  expect_names(weights_of(shape), {{"l.up_proj.weight", {7, 10}}, {"l.down_proj.weight", {5, 7}}});
  EXPECT_TRUE(probes_of(shape)[0].is_sparse);
}

}  // namespace
}  // namespace assay

#include "cases/spec/layouts.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Names = std::vector<std::string>;

WeightSpec spec(const std::string& name, Shape shape) { return {name, std::move(shape), Role::kInProj, 1, {}}; }

std::string text_of(const Placement& place) {
  std::string text = layout_name(place.layout) + ":";
  for (const Piece& piece : place.pieces)
    text += " " + piece.name + to_string(piece.shape) + "@" + std::to_string(piece.begin) + "+" +
            std::to_string(piece.count);
  return text;
}

// Where the last row of the table may stand.
Names places_of_last(const std::string& model, const std::vector<WeightSpec>& table) {
  Names all;
  const auto every_row = placements(model, table);
  for (const Placement& place : every_row.back()) all.push_back(text_of(place));
  return all;
}

TEST(Layouts, NamesReadBack) {
  EXPECT_EQ(layout_from_name("released"), kReleased);
  EXPECT_EQ(layout_from_name("fused"), Layout{kFused});
  EXPECT_EQ(layout_from_name("extras,renamed"), kExtras | kRenamed);
  EXPECT_EQ(layout_name(kExtras | kRenamed), "renamed,extras");
  EXPECT_EQ(layout_name(kReleased), "released");
  for (const char* wrong : {"", "fuse", "fused,", "fused renamed"}) EXPECT_THROW(layout_from_name(wrong), InputError);
}

TEST(Layouts, ExpertsFusedWithTheGateFirst) {
  const std::string at = "model.layers.1.feed_forward.experts";
  std::vector<WeightSpec> table = {spec(at + ".0.gate_proj.weight", {3, 2}), spec(at + ".1.down_proj.weight", {2, 3})};
  EXPECT_EQ(places_of_last("jamba", table),
            (Names{"released: " + at + ".1.down_proj.weight[2, 3]@0+6", "fused: " + at + ".down_proj[2, 2, 3]@6+6"}));
  table.push_back(spec(at + ".1.gate_proj.weight", {3, 2}));
  EXPECT_EQ(places_of_last("jamba", table).at(1), "fused: " + at + ".gate_up_proj[2, 6, 2]@12+6");
  table.push_back(spec(at + ".1.up_proj.weight", {3, 2}));
  EXPECT_EQ(places_of_last("jamba", table).at(1), "fused: " + at + ".gate_up_proj[2, 6, 2]@18+6");
  // w1 is the gate and w3 goes up; w2 comes down.
  EXPECT_EQ(places_of_last("lfm2_moe", {spec("a.experts.0.w3.weight", {3, 2})}).at(1),
            "fused: a.experts.gate_up_proj[1, 6, 2]@6+6");
  EXPECT_EQ(places_of_last("lfm2_moe", {spec("a.experts.0.w1.weight", {3, 2})}).at(1),
            "fused: a.experts.gate_up_proj[1, 6, 2]@0+6");
  EXPECT_EQ(places_of_last("lfm2_moe", {spec("a.experts.0.w2.weight", {2, 3})}).at(1),
            "fused: a.experts.down_proj[1, 2, 3]@0+6");
}

TEST(Layouts, ExpertsWithoutAGateAndBothPrefixes) {
  EXPECT_EQ(places_of_last("nemotron_h", {spec("backbone.layers.0.mixer.experts.1.up_proj.weight", {3, 2})}),
            (Names{"released: backbone.layers.0.mixer.experts.1.up_proj.weight[3, 2]@0+6",
                   "fused: backbone.layers.0.mixer.experts.up_proj[2, 3, 2]@6+6",
                   "renamed: model.layers.0.mixer.experts.1.up_proj.weight[3, 2]@0+6",
                   "fused,renamed: model.layers.0.mixer.experts.up_proj[2, 3, 2]@6+6"}));
  EXPECT_EQ(places_of_last("nemotron_h", {spec("backbone.embeddings.weight", {3, 2})}),
            (Names{"released: backbone.embeddings.weight[3, 2]@0+6", "renamed: model.embeddings.weight[3, 2]@0+6",
                   "renamed: backbone.embedding.weight[3, 2]@0+6"}));
}

TEST(Layouts, ReleasedFusedExpertsOneByOne) {
  const std::string at = "model.layers.0.mlp.experts";
  const Names up = places_of_last("qwen3_5_moe", {spec(at + ".gate_up_proj", {2, 6, 5})});
  ASSERT_EQ(up.size(), 4u);
  EXPECT_EQ(up[1], "one_by_one: " + at + ".0.gate_proj.weight[3, 5]@0+15 " + at + ".0.up_proj.weight[3, 5]@0+15 " + at +
                       ".1.gate_proj.weight[3, 5]@0+15 " + at + ".1.up_proj.weight[3, 5]@0+15");
  EXPECT_EQ(up[2], "renamed: model.language_model.layers.0.mlp.experts.gate_up_proj[2, 6, 5]@0+60");
  EXPECT_EQ(places_of_last("qwen3_5_moe", {spec(at + ".down_proj", {2, 5, 3})}).at(1),
            "one_by_one: " + at + ".0.down_proj.weight[5, 3]@0+15 " + at + ".1.down_proj.weight[5, 3]@0+15");
}

TEST(Layouts, RenamedTensors) {
  const auto renamed = [](const std::string& model, const std::string& name) {
    const Names all = places_of_last(model, {spec(name, {1})});
    return all.size() == 2 ? all[1] : "not one other place";
  };
  EXPECT_EQ(renamed("mamba", "backbone.embeddings.weight"), "renamed: backbone.embedding.weight[1]@0+1");
  EXPECT_EQ(renamed("granitemoehybrid", "a.block_sparse_moe.router.layer.weight"),
            "renamed: a.block_sparse_moe.router.weight[1]@0+1");
  EXPECT_EQ(renamed("qwen3_5", "model.norm.weight"), "renamed: model.language_model.norm.weight[1]@0+1");
  EXPECT_EQ(renamed("qwen3_5", "model.language_model.norm.weight"), "renamed: model.norm.weight[1]@0+1");
  EXPECT_EQ(renamed("bamba", "model.layers.3.mamba.conv1d.bias"),
            "renamed: backbone.layers.3.mixer.conv1d.bias[1]@0+1");
  EXPECT_EQ(renamed("bamba", "model.layers.3.pre_ff_layernorm.weight"),
            "renamed: backbone.layers.3.norm2.weight[1]@0+1");
  for (const char* same : {"lm_head.weight"})
    EXPECT_EQ(places_of_last("nemotron_h", {spec(same, {1})}).size(), 1u) << same;
}

// mamba_ssm holds q, k, v as rows of one tensor, and goes up before it gates.
TEST(Layouts, RowsOfSeveralTensorsInOne) {
  const std::string attention = "model.layers.0.self_attn.", dense = "model.layers.0.feed_forward.";
  std::vector<WeightSpec> table = {spec(attention + "q_proj.weight", {4, 3}), spec(attention + "k_proj.weight", {2, 3}),
                                   spec(attention + "v_proj.weight", {2, 3})};
  EXPECT_EQ(places_of_last("bamba", table).at(1), "renamed: backbone.layers.0.mixer.in_proj.weight[8, 3]@18+6");
  table = {spec(attention + "q_proj.bias", {4}), spec(attention + "v_proj.bias", {2}),
           spec(attention + "k_proj.bias", {2})};
  EXPECT_EQ(places_of_last("bamba", table).at(1), "renamed: backbone.layers.0.mixer.in_proj.bias[8]@4+2");
  table = {spec(dense + "up_proj.weight", {4, 3}), spec(dense + "gate_proj.weight", {4, 3})};
  EXPECT_EQ(places_of_last("bamba", table), (Names{"released: " + dense + "gate_proj.weight[4, 3]@0+12",
                                                   "renamed: backbone.layers.0.mlp.fc1.weight[8, 3]@12+12"}));
}

TEST(Layouts, SharedBlocksUnderEveryCallerOfTheirs) {
  std::vector<WeightSpec> table;
  for (const int layer : {1, 3, 4, 6, 12})
    table.push_back(spec("model.layers." + std::to_string(layer) + ".linear.weight", {1}));
  table.push_back(spec("model.layers.1.shared_transformer.x", {1}));
  EXPECT_EQ(places_of_last("zamba2", table), (Names{"released: model.layers.1.shared_transformer.x[1]@0+1",
                                                    "copies: model.layers.3.shared_transformer.x[1]@0+1",
                                                    "copies: model.layers.4.shared_transformer.x[1]@0+1",
                                                    "copies: model.layers.6.shared_transformer.x[1]@0+1",
                                                    "copies: model.layers.12.shared_transformer.x[1]@0+1"}));
  // Two blocks take turns.
  table.push_back(spec("model.layers.3.shared_transformer.x", {1}));
  EXPECT_EQ(places_of_last("zamba2", table), (Names{"released: model.layers.3.shared_transformer.x[1]@0+1",
                                                    "copies: model.layers.6.shared_transformer.x[1]@0+1"}));
}

TEST(Layouts, WhatIsIgnored) {
  EXPECT_TRUE(is_ignored("qwen3_next", "mtp.layers.0.mlp.gate.weight"));
  EXPECT_TRUE(is_ignored("qwen3_5", "model.visual.blocks.0.norm1.weight"));
  EXPECT_TRUE(is_ignored("bamba", "model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_ignored("mamba", "mtp.layers.0.norm.weight"));
  EXPECT_FALSE(is_ignored("qwen3_next", "model.mtp.norm.weight"));
  EXPECT_FALSE(is_ignored("qwen3_next", "model.visual.norm.weight"));
  EXPECT_FALSE(is_ignored("jamba", "model.layers.0.self_attn.rotary_emb.inv_freq"));
}

TEST(Layouts, WithoutOtherPlacesThereIsOnlyTheRelease) {
  EXPECT_EQ(places_of_last("falcon_mamba", {spec("backbone.embeddings.weight", {1})}).size(), 1u);
  EXPECT_EQ(places_of_last("qwen3_next", {spec("model.layers.0.mlp.shared_expert.up_proj.weight", {1, 1})}).size(), 1u);
  EXPECT_EQ(places_of_last("jamba", {spec("model.layers.0.feed_forward.up_proj.weight", {1, 1})}).size(), 1u);
}

}  // namespace
}  // namespace assay

#include "cases/spec/models/lfm2_moe.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;

ModelConfig config_of(Json fields) { return testing::config_of("lfm2_moe", std::move(fields)); }

Json small() {
  return Json::parse(R"({
    "model_type": "lfm2_moe", "vocab_size": 53, "hidden_size": 20, "intermediate_size": 33,
    "moe_intermediate_size": 11, "num_hidden_layers": 2, "num_dense_layers": 1,
    "layer_types": ["conv", "full_attention"], "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 10,
    "norm_eps": 0.003, "conv_L_cache": 3, "num_experts": 3, "num_experts_per_tok": 2, "use_expert_bias": true,
    "norm_topk_prob": true, "routed_scaling_factor": 1.7})");
}

Json with(const std::string& field, Json value) { return testing::with(small(), field, std::move(value)); }

void expect_refused(const Json& fields, const std::string& field, std::initializer_list<std::string> parts) {
  testing::expect_refusal(config_of(fields), "/config/" + field, parts);
}

TEST(Lfm2MoeFields, DefaultsAreTheOriginals) {
  Json fields;
  fields["layer_types"] = std::vector<std::string>(32, "conv");
  const Lfm2Backbone model = lfm2_moe_fields(config_of(fields));
  EXPECT_EQ(model.hidden_size, 2048);
  EXPECT_EQ(model.dense.width, 7168);  // as it is, unlike lfm2
  EXPECT_EQ(model.dense_layers, 2);
  EXPECT_EQ(model.experts.width, 1792);
  EXPECT_EQ(model.experts.count, 32);
  EXPECT_EQ(model.experts.chosen, 4);
  EXPECT_TRUE(model.experts.has_selection_bias);
  EXPECT_TRUE(model.experts.normalises);
  EXPECT_EQ(model.experts.epsilon, 1e-6);
  EXPECT_EQ(model.experts.scaling, 1);
  EXPECT_EQ(model.attention.rotary.theta, 1e6);
  EXPECT_TRUE(model.tie_word_embeddings);
  EXPECT_NO_THROW(model_spec("lfm2_moe").check(config_of(small())));
}

TEST(Lfm2MoeFields, LiesAreRefused) {
  expect_refused(with("num_experts_per_tok", 4), "num_experts_per_tok", {"num_experts = 3"});
  expect_refused(with("num_experts_per_tok", 0), "num_experts_per_tok", {"from 1"});
  expect_refused(with("num_dense_layers", 3), "num_dense_layers", {"num_hidden_layers = 2"});
  expect_refused(with("num_dense_layers", -1), "num_dense_layers", {"from 0"});
  expect_refused(with("routed_scaling_factor", 0), "routed_scaling_factor", {"above 0"});
  expect_refused(with("use_expert_bias", 1), "use_expert_bias", {"true or false"});
  expect_refused(with("layer_types", nullptr), "layer_types", {"2 words"});
  expect_refused(with("num_key_value_heads", 4), "num_key_value_heads", {"divisor"});
  expect_refused(with("full_attn_idxs", {0}), "full_attn_idxs", {"not a field of lfm2_moe"});
  expect_refused(with("block_ff_dim", 20), "block_ff_dim", {"not a field of lfm2_moe"});
}

// Of the feed-forward parts; the rest is lfm2's.
TEST(Lfm2MoeWeights, ExpertsOneByOneAndTheBias) {
  const auto shapes = testing::shapes_of(config_of(small()));
  EXPECT_EQ(shapes.at("model.layers.0.feed_forward.w1.weight"), (Shape{33, 20}));
  EXPECT_EQ(shapes.at("model.layers.0.feed_forward.w2.weight"), (Shape{20, 33}));
  EXPECT_EQ(shapes.at("model.layers.1.feed_forward.gate.weight"), (Shape{3, 20}));
  EXPECT_EQ(shapes.at("model.layers.1.feed_forward.expert_bias"), (Shape{3}));
  for (const std::string expert : {"0", "1", "2"}) {
    const std::string prefix = "model.layers.1.feed_forward.experts." + expert;
    EXPECT_EQ(shapes.at(prefix + ".w1.weight"), (Shape{11, 20}));
    EXPECT_EQ(shapes.at(prefix + ".w3.weight"), (Shape{11, 20}));
    EXPECT_EQ(shapes.at(prefix + ".w2.weight"), (Shape{20, 11}));
  }
  // Embedding, norms (5), convolution (3), attention (6), dense (3), router and bias, 9 of experts; a tied head.
  EXPECT_EQ(shapes.size(), 1U + 5 + 3 + 6 + 3 + 2 + 9);
  EXPECT_EQ(model_spec("lfm2_moe").weights(config_of(with("use_expert_bias", false))).size(), shapes.size() - 1);
}

TEST(Lfm2MoeProbes, RoutedAndDenseLayers) {
  std::string names;
  for (const ProbeSpec& probe : model_spec("lfm2_moe").probes(config_of(small())))
    if (probe.name.find(".ff.") != std::string::npos) names += probe.name + " ";
  EXPECT_EQ(names, "layers.0.ff.act layers.0.ff.down_proj layers.1.ff.router layers.1.ff.routing layers.1.ff.experts ");
}

}  // namespace
}  // namespace assay

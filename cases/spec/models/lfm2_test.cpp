#include "cases/spec/models/lfm2.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;

ModelConfig config_of(Json fields) { return testing::config_of("lfm2", std::move(fields)); }

Json small() {
  return Json::parse(R"({
    "model_type": "lfm2", "vocab_size": 53, "hidden_size": 20, "intermediate_size": 31, "block_multiple_of": 8,
    "num_hidden_layers": 2, "layer_types": ["conv", "full_attention"], "num_attention_heads": 6,
    "num_key_value_heads": 3, "head_dim": 10, "norm_eps": 0.003, "conv_bias": true, "conv_L_cache": 3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0}, "tie_word_embeddings": false})");
}

Json with(const std::string& field, Json value) { return testing::with(small(), field, std::move(value)); }

void expect_refused(const Json& fields, const std::string& field, std::initializer_list<std::string> parts) {
  testing::expect_refusal(config_of(fields), "/config/" + field, parts);
}

TEST(Lfm2Fields, DefaultsAreTheOriginals) {
  const Lfm2Backbone model = lfm2_fields(config_of(Json::object()));
  EXPECT_EQ(model.vocab_size, 65536);
  EXPECT_EQ(model.hidden_size, 2560);
  EXPECT_EQ(model.layers(), 32);
  for (const bool is_attention : model.is_attention) EXPECT_TRUE(is_attention);
  EXPECT_EQ(model.attention.head_dim, 80);
  EXPECT_EQ(model.attention.kv_heads, 8);
  EXPECT_EQ(model.attention.rotary.theta, 1e6);
  EXPECT_EQ(model.attention.rotary.width, 80);
  EXPECT_EQ(model.dense.width, 8192);
  EXPECT_EQ(model.conv.conv_kernel, 3);
  EXPECT_FALSE(model.conv.has_bias);
  EXPECT_TRUE(model.tie_word_embeddings);
  EXPECT_NO_THROW(model_spec("lfm2").check(config_of(small())));
}

// Lfm2MLP of transformers 5.24.0.
TEST(Lfm2Fields, WidthOfTheFeedForwardPart) {
  const auto width = [](Json fields) { return lfm2_fields(config_of(std::move(fields))).dense.width; };
  EXPECT_EQ(width(small()), 24);  // int(62 / 3) = 20, up to a multiple of 8
  EXPECT_EQ(width(with("block_auto_adjust_ff_dim", false)), 31);
  EXPECT_EQ(width(with("block_ffn_dim_multiplier", nullptr)), 20);
  EXPECT_EQ(width(with("block_ffn_dim_multiplier", 1.3)), 32);  // int(1.3 * 20) = 26
  EXPECT_EQ(width(with("block_ffn_dim_multiplier", 1.2)), 24);  // 24 stays
  EXPECT_EQ(width(with("block_ff_dim", 60)), 40);               // the early name wins
}

TEST(Lfm2Fields, LayerKinds) {
  const auto kinds = [](Json fields) { return lfm2_fields(config_of(std::move(fields))).is_attention; };
  EXPECT_EQ(kinds(small()), (std::vector<bool>{false, true}));
  Json fields = small();
  fields.erase("layer_types");
  EXPECT_EQ(kinds(fields), (std::vector<bool>{true, true}));
  fields["full_attn_idxs"] = {0};
  EXPECT_EQ(kinds(fields), (std::vector<bool>{true, false}));
  fields["full_attn_idxs"] = Json::array();
  EXPECT_EQ(kinds(fields), (std::vector<bool>{false, false}));
  expect_refused(with("full_attn_idxs", {0}), "full_attn_idxs", {"layer_types"});
  expect_refused(with("full_attn_idxs", {2}), "full_attn_idxs", {"from 0 to 1"});
  expect_refused(with("layer_types", {"conv"}), "layer_types", {"2 words"});
  expect_refused(with("layer_types", {"conv", "mamba"}), "layer_types", {"full_attention"});
}

TEST(Lfm2Fields, LiesAreRefused) {
  expect_refused(with("num_key_value_heads", 4), "num_key_value_heads", {"divisor", "6"});
  expect_refused(with("head_dim", 9), "rope_parameters", {"even"});
  expect_refused(with("rope_parameters", {{"rope_theta", 500.0}, {"partial_rotary_factor", 0.4}}), "rope_parameters",
                 {"10 lanes"});
  expect_refused(with("conv_L_cache", 1), "conv_L_cache", {"from 2 to 4"});
  expect_refused(with("hidden_size", -1), "hidden_size", {"from 1"});
  expect_refused(with("norm_eps", 0), "norm_eps", {"above 0"});
  expect_refused(with("conv_bias", 1), "conv_bias", {"true or false"});
  expect_refused(with("tie_embedding", "yes"), "tie_embedding", {"true or false"});
  expect_refused(with("theta", 10000.0), "theta", {"500"});
  expect_refused(with("block_dim", 24), "block_dim", {"hidden_size = 20"});
  expect_refused(with("num_heads", 5), "num_heads", {"6"});
  expect_refused(with("block_use_swiglu", false), "block_use_swiglu", {"true"});
  expect_refused(with("block_ffn_dim_multiplier", 0.01), "block_ffn_dim_multiplier", {"from 1"});
  expect_refused(with("model_type", "lfm2_moe"), "model_type", {"lfm2"});
  expect_refused(with("norm_epsilon", 1e-5), "norm_epsilon", {"not a field of lfm2", "norm_eps"});
  expect_refused(with("vocab_size", (1 << 30) + 1), "vocab_size", {});
}

// state_dict of Lfm2ForCausalLM (transformers 5.24.0).
TEST(Lfm2Weights, TableIsTheOriginals) {
  const std::vector<testing::Row> expected = {
      {"model.embed_tokens.weight", {53, 20}},
      {"model.layers.0.operator_norm.weight", {20}},
      {"model.layers.0.conv.in_proj.weight", {60, 20}},
      {"model.layers.0.conv.in_proj.bias", {60}},
      {"model.layers.0.conv.conv.weight", {20, 1, 3}},
      {"model.layers.0.conv.conv.bias", {20}},
      {"model.layers.0.conv.out_proj.weight", {20, 20}},
      {"model.layers.0.conv.out_proj.bias", {20}},
      {"model.layers.0.ffn_norm.weight", {20}},
      {"model.layers.0.feed_forward.w1.weight", {24, 20}},
      {"model.layers.0.feed_forward.w3.weight", {24, 20}},
      {"model.layers.0.feed_forward.w2.weight", {20, 24}},
      {"model.layers.1.operator_norm.weight", {20}},
      {"model.layers.1.self_attn.q_proj.weight", {60, 20}},
      {"model.layers.1.self_attn.k_proj.weight", {30, 20}},
      {"model.layers.1.self_attn.v_proj.weight", {30, 20}},
      {"model.layers.1.self_attn.out_proj.weight", {20, 60}},
      {"model.layers.1.self_attn.q_layernorm.weight", {10}},
      {"model.layers.1.self_attn.k_layernorm.weight", {10}},
      {"model.layers.1.ffn_norm.weight", {20}},
      {"model.layers.1.feed_forward.w1.weight", {24, 20}},
      {"model.layers.1.feed_forward.w3.weight", {24, 20}},
      {"model.layers.1.feed_forward.w2.weight", {20, 24}},
      {"model.embedding_norm.weight", {20}},
      {"lm_head.weight", {53, 20}},
  };
  testing::expect_weights(config_of(small()), expected);
  // Without biases and with a tied head: three tensors and the head less.
  Json fields = with("conv_bias", false);
  fields["tie_embedding"] = true;  // wins over tie_word_embeddings
  EXPECT_EQ(model_spec("lfm2").weights(config_of(fields)).size(), expected.size() - 4);
}

TEST(Lfm2Probes, InOrderOfComputationThenStates) {
  const std::vector<testing::Row> expected = {
      {"embed", {20}},
      {"layers.0.norm", {20}},
      {"layers.0.mixer.in_proj", {60}},
      {"layers.0.mixer.conv1d", {20}},
      {"layers.0.mixer.gate", {20}},
      {"layers.0.mixer.out_proj", {20}},
      {"layers.0.mixed", {20}},
      {"layers.0.ff_norm", {20}},
      {"layers.0.ff.act", {24}},
      {"layers.0.ff.down_proj", {20}},
      {"layers.0.out", {20}},
      {"layers.1.norm", {20}},
      {"layers.1.attn.q", {6, 10}},
      {"layers.1.attn.k", {3, 10}},
      {"layers.1.attn.v", {3, 10}},
      {"layers.1.attn.attention", {6, 10}},
      {"layers.1.attn.out_proj", {20}},
      {"layers.1.mixed", {20}},
      {"layers.1.ff_norm", {20}},
      {"layers.1.ff.act", {24}},
      {"layers.1.ff.down_proj", {20}},
      {"layers.1.out", {20}},
      {"norm_f", {20}},
      {"logits", {53}},
      {"layers.0.mixer.conv_state", {20, 3}},
      {"layers.1.attn.k_cache", {3, 10}},
      {"layers.1.attn.v_cache", {3, 10}},
  };
  testing::expect_probes(config_of(small()), expected);
  EXPECT_EQ(model_spec("lfm2").probes(config_of(small())).at(25).follows, "layers.1.attn.k");
}

}  // namespace
}  // namespace assay

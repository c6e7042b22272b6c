#include "cases/spec/models/qwen3_next.hpp"

#include <gtest/gtest.h>

#include <map>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using testing::shapes_of;
using testing::with;

ModelConfig config_of(Json fields) { return testing::config_of("qwen3_next", std::move(fields)); }

Json saved() {
  return Json::parse(R"({
    "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": null, "decoder_sparse_step": 1,
    "dtype": "float32",
    "eos_token_id": null, "head_dim": 16, "hidden_act": "silu", "hidden_size": 24, "initializer_range": 0.02,
    "intermediate_size": 20, "layer_types": ["linear_attention", "full_attention", "linear_attention"],
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 6, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_value_head_dim": 5, "max_position_embeddings": 512, "mlp_only_layers": [1], "model_type": "qwen3_next",
    "moe_intermediate_size": 10, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 2,
    "num_experts_per_tok": 1, "num_hidden_layers": 3, "num_key_value_heads": 2, "output_router_logits": false,
    "pad_token_id": null, "rms_norm_eps": 1e-06,
    "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"},
    "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 12, "tie_word_embeddings": false,
    "transformers_version": "5.24.0", "use_cache": true, "vocab_size": 56})");
}

QwenBackbone fields_with(const std::string& field, Json value) {
  return qwen3_next_fields(config_of(with(saved(), field, std::move(value))));
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("qwen3_next", saved(), field, value, parts);
}

TEST(Qwen3NextFields, DefaultsAreTheOriginals) {
  const QwenBackbone f = qwen3_next_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 151936);
  EXPECT_EQ(f.hidden_size, 2048);
  EXPECT_EQ(f.num_hidden_layers, 48);
  EXPECT_EQ(f.rms_norm_eps, 1e-6);
  EXPECT_FALSE(f.tie_word_embeddings);
  EXPECT_EQ(f.attention.heads, 16);
  EXPECT_EQ(f.attention.kv_heads, 2);
  EXPECT_EQ(f.attention.head_dim, 256);
  EXPECT_EQ(f.attention.rotary.width, 64);
  EXPECT_EQ(f.attention.rotary.theta, 10000);
  EXPECT_EQ(f.attention.scale, 1.0 / 16);
  EXPECT_FALSE(f.attention.has_bias);
  EXPECT_EQ(f.mixer.key_heads, 16);
  EXPECT_EQ(f.mixer.value_heads, 32);
  EXPECT_EQ(f.mixer.key_dim, 128);
  EXPECT_EQ(f.mixer.conv_dim(), 2 * 2048 + 4096);
  EXPECT_EQ(f.experts.count, 512);
  EXPECT_EQ(f.experts.chosen, 10);
  EXPECT_EQ(f.experts.width, 512);
  EXPECT_TRUE(f.experts.normalises);
  EXPECT_EQ(f.shared.width, 512);
  EXPECT_EQ(f.dense.width, 5632);
  EXPECT_TRUE(f.is_attention[3]);
  EXPECT_FALSE(f.is_attention[4]);
  EXPECT_TRUE(f.is_routed[0]);
}

TEST(Qwen3NextFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("qwen3_next").check(config_of(saved())));
  EXPECT_NO_THROW(model_spec("qwen3_next").check(config_of(Json::object())));
}

TEST(Qwen3NextFields, LayersThatAreRouted) {
  using Kinds = std::vector<bool>;
  EXPECT_EQ(fields_with("mlp_only_layers", Json::array()).is_routed, (Kinds{true, true, true}));
  EXPECT_EQ(fields_with("mlp_only_layers", {0, 2}).is_routed, (Kinds{false, true, false}));
  EXPECT_EQ(fields_with("mlp_only_layers", nullptr).is_routed, (Kinds{true, true, true}));
  EXPECT_EQ(fields_with("decoder_sparse_step", 2).is_routed, (Kinds{false, false, false}));  // layer 1 by name
  EXPECT_EQ(fields_with("decoder_sparse_step", 3).is_routed, (Kinds{false, false, true}));
  EXPECT_EQ(fields_with("num_experts", 0).is_routed, (Kinds{false, false, false}));
}

TEST(Qwen3NextFields, WrongValuesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("num_key_value_heads", 3, {"divisor of num_attention_heads = 4"});
  expect_refused("linear_num_value_heads", 3, {"multiple of linear_num_key_heads = 2"});
  expect_refused("linear_num_value_heads", 1, {"multiple of linear_num_key_heads = 2"});
  expect_refused("linear_conv_kernel_dim", 5, {"from 2 to 4"});
  expect_refused("linear_key_head_dim", -6, {"from 1"});
  expect_refused("layer_types", {"linear_attention", "full_attention"}, {"3 words"});
  expect_refused("layer_types", {"linear_attention", "full_attention", "mamba"}, {"\"full_attention\""});
  expect_refused("full_attention_interval", 0, {"from 1"});
  expect_refused("num_experts_per_tok", 3, {"at most num_experts = 2"});
  expect_refused("num_experts_per_tok", 0, {"from 1"});
  expect_refused("mlp_only_layers", {3}, {"from 0 to 2"});
  expect_refused("decoder_sparse_step", 0, {"from 1"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("rms_norm_eps", 0, {"above 0"});
  expect_refused("rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.3125}}, {"even", "5"});
  expect_refused("rope_parameters", {{"rope_type", "longrope"}, {"factor", 2}}, {"rope_type"});
  expect_refused("head_dim", 0, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("model_type", "qwen3_moe", {"\"qwen3_next\""});
  expect_refused("norm_topk_prob", 1, {"true or false"});
  expect_refused("linear_num_heads", 2, {"not a field of qwen3_next", "linear_num_key_heads"});
}

TEST(Qwen3NextWeights, NamesAndShapesOfTheReleasedFiles) {
  const std::map<std::string, Shape> shapes = shapes_of(config_of(saved()));
  const std::map<std::string, Shape> some = {
      {"model.embed_tokens.weight", {56, 24}},
      {"lm_head.weight", {56, 24}},
      {"model.norm.weight", {24}},
      {"model.layers.0.input_layernorm.weight", {24}},
      {"model.layers.0.post_attention_layernorm.weight", {24}},
      {"model.layers.0.linear_attn.in_proj_qkvz.weight", {2 * 2 * 6 + 2 * 4 * 5, 24}},
      {"model.layers.0.linear_attn.in_proj_ba.weight", {8, 24}},
      {"model.layers.0.linear_attn.conv1d.weight", {2 * 2 * 6 + 4 * 5, 1, 4}},
      {"model.layers.0.linear_attn.dt_bias", {4}},
      {"model.layers.0.linear_attn.A_log", {4}},
      {"model.layers.0.linear_attn.norm.weight", {5}},
      {"model.layers.0.linear_attn.out_proj.weight", {24, 20}},
      {"model.layers.0.mlp.gate.weight", {2, 24}},
      {"model.layers.0.mlp.experts.1.gate_proj.weight", {10, 24}},
      {"model.layers.0.mlp.experts.1.up_proj.weight", {10, 24}},
      {"model.layers.0.mlp.experts.1.down_proj.weight", {24, 10}},
      {"model.layers.0.mlp.shared_expert.up_proj.weight", {12, 24}},
      {"model.layers.0.mlp.shared_expert.down_proj.weight", {24, 12}},
      {"model.layers.0.mlp.shared_expert_gate.weight", {1, 24}},
      {"model.layers.1.self_attn.q_proj.weight", {2 * 4 * 16, 24}},
      {"model.layers.1.self_attn.k_proj.weight", {2 * 16, 24}},
      {"model.layers.1.self_attn.o_proj.weight", {24, 4 * 16}},
      {"model.layers.1.self_attn.q_norm.weight", {16}},
      {"model.layers.1.mlp.down_proj.weight", {24, 20}}};
  for (const auto& [name, shape] : some) {
    ASSERT_TRUE(shapes.contains(name)) << name;
    EXPECT_EQ(shapes.at(name), shape) << name;
  }
  // 3 ends; a layer has 2 norms; the mixer 7, attention 6; a routed part 1 + 2 * 3 + 3 + 1, a dense one 3.
  EXPECT_EQ(shapes.size(), 3U + 3 * 2 + 2 * (7 + 11) + (6 + 3));

  Json tied = saved();
  tied["tie_word_embeddings"] = true;
  tied["attention_bias"] = true;
  const auto others = shapes_of(config_of(tied));
  EXPECT_FALSE(others.contains("lm_head.weight"));
  EXPECT_EQ(others.at("model.layers.1.self_attn.q_proj.bias"), (Shape{2 * 4 * 16}));
  EXPECT_EQ(others.at("model.layers.1.self_attn.o_proj.bias"), (Shape{24}));
}

TEST(Qwen3NextWeights, OnlyTheGatedNormIsNearOne) {
  for (const WeightSpec& weight : model_spec("qwen3_next").weights(config_of(saved()))) {
    if (weight.name.find("norm.weight") == std::string::npos) continue;
    const bool is_gated = weight.name.find("linear_attn.norm") != std::string::npos;
    EXPECT_EQ(weight.role, is_gated ? Role::kGatedNorm : Role::kZeroNorm) << weight.name;
  }
}

TEST(Qwen3NextProbes, OrderAndStates) {
  std::vector<std::string> names;
  std::map<std::string, Shape> shapes;
  for (const ProbeSpec& probe : model_spec("qwen3_next").probes(config_of(saved()))) {
    names.push_back(probe.name);
    shapes[probe.name] = probe.shape;
  }
  const std::vector<std::string> first = {"embed",
                                          "layers.0.norm",
                                          "layers.0.mixer.in_proj_qkvz",
                                          "layers.0.mixer.in_proj_ba",
                                          "layers.0.mixer.conv1d",
                                          "layers.0.mixer.beta",
                                          "layers.0.mixer.g",
                                          "layers.0.mixer.delta",
                                          "layers.0.mixer.norm",
                                          "layers.0.mixer.out_proj",
                                          "layers.0.mixed",
                                          "layers.0.ff_norm",
                                          "layers.0.ff.router",
                                          "layers.0.ff.routing",
                                          "layers.0.ff.experts",
                                          "layers.0.ff.shared.act",
                                          "layers.0.ff.shared.down_proj",
                                          "layers.0.ff.shared.gate",
                                          "layers.0.ff.out",
                                          "layers.0.out",
                                          "layers.1.norm",
                                          "layers.1.attn.q",
                                          "layers.1.attn.k",
                                          "layers.1.attn.v",
                                          "layers.1.attn.attention",
                                          "layers.1.attn.gated",
                                          "layers.1.attn.out_proj",
                                          "layers.1.mixed",
                                          "layers.1.ff_norm",
                                          "layers.1.ff.act",
                                          "layers.1.ff.down_proj",
                                          "layers.1.out"};
  ASSERT_GE(names.size(), first.size());
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(first.size())), first);
  EXPECT_EQ(shapes.at("layers.0.mixer.delta"), (Shape{4, 5}));
  EXPECT_EQ(shapes.at("layers.0.mixer.delta_state"), (Shape{4, 6, 5}));
  EXPECT_EQ(shapes.at("layers.2.mixer.conv_state"), (Shape{44, 4}));
  EXPECT_EQ(shapes.at("layers.1.attn.k_cache"), (Shape{2, 16}));
  EXPECT_EQ(shapes.at("layers.0.ff.shared.gate"), (Shape{1}));
}

}  // namespace
}  // namespace assay

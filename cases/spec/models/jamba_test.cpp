#include "cases/spec/models/jamba.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::Row;
using testing::with;

// config.json as transformers 5.24.0 saves it: attention with a dense part, recurrent with a routed one.
Json saved() {
  return Json::parse(R"({
    "attention_dropout": 0.0, "attn_layer_offset": 0, "attn_layer_period": 2, "bos_token_id": 1, "eos_token_id": 2,
    "expert_layer_offset": 1, "expert_layer_period": 2, "head_dim": 7, "hidden_act": "silu", "hidden_size": 15,
    "initializer_range": 0.02, "intermediate_size": 11, "mamba_conv_bias": true, "mamba_d_conv": 3, "mamba_d_state": 7,
    "mamba_dt_rank": 4, "mamba_expand": 3, "mamba_proj_bias": true, "max_position_embeddings": 262144,
    "model_type": "jamba", "num_attention_heads": 6, "num_experts": 2, "num_experts_per_tok": 1, "num_hidden_layers": 2,
    "num_key_value_heads": 3, "output_router_logits": false, "pad_token_id": 0, "rms_norm_eps": 0.003,
    "router_aux_loss_coef": 0.001, "tie_word_embeddings": false, "transformers_version": "5.24.0",
    "use_associative_scan": true, "use_cache": true, "use_mamba_kernels": true, "use_mambapy": false,
    "vocab_size": 53})");
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("jamba", saved(), field, value, parts);
}

TEST(JambaFields, DefaultsAreTheOriginals) {
  const JambaFields f = jamba_fields(config_of("jamba", Json::object()));
  EXPECT_EQ(f.vocab_size, 65536);
  EXPECT_EQ(f.hidden_size, 4096);
  EXPECT_EQ(f.epsilon, 1e-6);
  EXPECT_FALSE(f.tie_word_embeddings);
  EXPECT_EQ(f.mixer.intermediate_size, 8192);
  EXPECT_EQ(f.mixer.state_size, 16);
  EXPECT_EQ(f.mixer.conv_kernel, 4);
  EXPECT_EQ(f.mixer.time_step_rank, 256);
  EXPECT_EQ(f.mixer.epsilon, 1e-6);
  EXPECT_EQ(f.mixer.selection_norm, MambaMixerShape::SelectionNorm::kWeighted);
  EXPECT_FALSE(f.mixer.has_bias);
  EXPECT_TRUE(f.mixer.has_conv_bias);
  EXPECT_EQ(f.attention.heads, 32);
  EXPECT_EQ(f.attention.kv_heads, 8);
  EXPECT_EQ(f.attention.head_dim, 128);
  EXPECT_DOUBLE_EQ(f.attention.scale, 0.08838834764831845);
  EXPECT_FALSE(f.attention.rotary.is_on());
  EXPECT_EQ(f.feed_forward.width, 14336);
  EXPECT_EQ(f.experts.width, 14336);
  EXPECT_EQ(f.experts.count, 16);
  EXPECT_EQ(f.experts.chosen, 2);
  EXPECT_EQ(f.experts.router, ExpertsShape::Router::kSoftmaxTopK);
  EXPECT_FALSE(f.experts.normalises);
  ASSERT_EQ(f.layers.size(), 32u);
  for (size_t l = 0; l < f.layers.size(); ++l) {
    EXPECT_EQ(f.layers[l].is_attention, l == 4 || l == 12 || l == 20 || l == 28) << l;
    EXPECT_EQ(f.layers[l].is_routed, l % 2 == 1) << l;
  }
}

TEST(JambaFields, OneExpertIsADensePart) {
  const JambaFields f = jamba_fields(config_of("jamba", with(saved(), "num_experts", 1)));
  for (const JambaLayer& layer : f.layers) EXPECT_FALSE(layer.is_routed);
}

TEST(JambaFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("jamba").check(config_of("jamba", saved())));
  EXPECT_NO_THROW(model_spec("jamba").check(config_of("jamba", Json::object())));
}

TEST(JambaFields, LiesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("intermediate_size", -3, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("num_key_value_heads", 4, {"divisor of num_attention_heads = 6"});
  expect_refused("num_key_value_heads", 12, {"divisor of num_attention_heads = 6"});
  expect_refused("num_key_value_heads", nullptr, {"number of heads", "got null"});
  expect_refused("head_dim", 0, {"from 1"});
  expect_refused("num_experts", 0, {"from 1"});
  expect_refused("num_experts_per_tok", 3, {"at most num_experts = 2"});
  expect_refused("attn_layer_offset", 2, {"less than attn_layer_period = 2"});
  expect_refused("expert_layer_offset", 2, {"less than expert_layer_period = 2"});
  expect_refused("attn_layer_period", 0, {"from 1"});
  expect_refused("mamba_d_conv", 1, {"from 2 to 4"});
  expect_refused("mamba_expand", 2.5, {"whole number"});
  expect_refused("mamba_dt_rank", "four", {"\"auto\""});
  expect_refused("rms_norm_eps", "1e-6", {"above 0"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "zamba", {"\"jamba\""});
  expect_refused("num_expert_per_tok", 1, {"not a field of jamba", "num_experts_per_tok"});
  for (const char* flag : {"mamba_conv_bias", "mamba_proj_bias", "tie_word_embeddings", "use_cache",
                           "use_mamba_kernels", "output_router_logits"})
    expect_refused(flag, 1, {"true or false"});
}

TEST(JambaFields, HeadsDivideTheWidthUnlessTheirOwnIsGiven) {
  Json fields = saved();
  fields.erase("head_dim");
  testing::expect_refused("jamba", fields, "num_attention_heads", 6, {"divisor of hidden_size = 15"});
  EXPECT_EQ(jamba_fields(config_of("jamba", with(fields, "num_attention_heads", 3))).attention.head_dim, 5);
}

// The released names, models.md part 6: experts one by one.
const std::vector<Row> kReleased = {
    {"model.embed_tokens.weight", {53, 15}},
    {"model.layers.0.input_layernorm.weight", {15}},
    {"model.layers.0.self_attn.q_proj.weight", {42, 15}},
    {"model.layers.0.self_attn.k_proj.weight", {21, 15}},
    {"model.layers.0.self_attn.v_proj.weight", {21, 15}},
    {"model.layers.0.self_attn.o_proj.weight", {15, 42}},
    {"model.layers.0.pre_ff_layernorm.weight", {15}},
    {"model.layers.0.feed_forward.gate_proj.weight", {11, 15}},
    {"model.layers.0.feed_forward.up_proj.weight", {11, 15}},
    {"model.layers.0.feed_forward.down_proj.weight", {15, 11}},
    {"model.layers.1.input_layernorm.weight", {15}},
    {"model.layers.1.mamba.A_log", {45, 7}},
    {"model.layers.1.mamba.D", {45}},
    {"model.layers.1.mamba.conv1d.weight", {45, 1, 3}},
    {"model.layers.1.mamba.conv1d.bias", {45}},
    {"model.layers.1.mamba.in_proj.weight", {90, 15}},
    {"model.layers.1.mamba.in_proj.bias", {90}},
    {"model.layers.1.mamba.x_proj.weight", {18, 45}},
    {"model.layers.1.mamba.dt_proj.weight", {45, 4}},
    {"model.layers.1.mamba.dt_proj.bias", {45}},
    {"model.layers.1.mamba.out_proj.weight", {15, 45}},
    {"model.layers.1.mamba.out_proj.bias", {15}},
    {"model.layers.1.mamba.dt_layernorm.weight", {4}},
    {"model.layers.1.mamba.b_layernorm.weight", {7}},
    {"model.layers.1.mamba.c_layernorm.weight", {7}},
    {"model.layers.1.pre_ff_layernorm.weight", {15}},
    {"model.layers.1.feed_forward.router.weight", {2, 15}},
    {"model.layers.1.feed_forward.experts.0.gate_proj.weight", {11, 15}},
    {"model.layers.1.feed_forward.experts.0.up_proj.weight", {11, 15}},
    {"model.layers.1.feed_forward.experts.0.down_proj.weight", {15, 11}},
    {"model.layers.1.feed_forward.experts.1.gate_proj.weight", {11, 15}},
    {"model.layers.1.feed_forward.experts.1.up_proj.weight", {11, 15}},
    {"model.layers.1.feed_forward.experts.1.down_proj.weight", {15, 11}},
    {"model.final_layernorm.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(JambaWeights, TableIsTheReleasedOne) { testing::expect_weights(config_of("jamba", saved()), kReleased); }

TEST(JambaProbes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of("jamba", saved()), {
                                                          {"embed", {15}},
                                                          {"layers.0.norm", {15}},
                                                          {"layers.0.attn.q", {6, 7}},
                                                          {"layers.0.attn.k", {3, 7}},
                                                          {"layers.0.attn.v", {3, 7}},
                                                          {"layers.0.attn.attention", {6, 7}},
                                                          {"layers.0.attn.out_proj", {15}},
                                                          {"layers.0.mixed", {15}},
                                                          {"layers.0.ff_norm", {15}},
                                                          {"layers.0.ff.act", {11}},
                                                          {"layers.0.ff.down_proj", {15}},
                                                          {"layers.0.out", {15}},
                                                          {"layers.1.norm", {15}},
                                                          {"layers.1.mixer.in_proj", {90}},
                                                          {"layers.1.mixer.conv1d", {45}},
                                                          {"layers.1.mixer.x_proj", {18}},
                                                          {"layers.1.mixer.selection", {18}},
                                                          {"layers.1.mixer.dt", {45}},
                                                          {"layers.1.mixer.scan", {45}},
                                                          {"layers.1.mixer.gate", {45}},
                                                          {"layers.1.mixer.out_proj", {15}},
                                                          {"layers.1.mixed", {15}},
                                                          {"layers.1.ff_norm", {15}},
                                                          {"layers.1.ff.router", {2}},
                                                          {"layers.1.ff.routing", {2}},
                                                          {"layers.1.ff.experts", {15}},
                                                          {"layers.1.out", {15}},
                                                          {"norm_f", {15}},
                                                          {"logits", {53}},
                                                          {"layers.0.attn.k_cache", {3, 7}},
                                                          {"layers.0.attn.v_cache", {3, 7}},
                                                          {"layers.1.mixer.conv_state", {45, 3}},
                                                          {"layers.1.mixer.ssm_state", {45, 7}},
                                                      });
}

}  // namespace
}  // namespace assay

#include "cases/spec/models/falcon_h1.hpp"

#include <gtest/gtest.h>

#include <array>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::Row;
using testing::with;
using Gate = Mamba2MixerShape::Gate;

// config.json as transformers 5.24.0 saves it; every bias on.
Json saved() {
  return Json::parse(R"({
    "attention_bias": true, "attention_dropout": 0.0, "attention_in_multiplier": 0.87, "attention_out_multiplier": -1.41,
    "bos_token_id": 1, "embedding_multiplier": 0.37, "eos_token_id": 2, "head_dim": 6, "hidden_act": "silu",
    "hidden_size": 15, "initializer_range": 0.02, "intermediate_size": 29, "key_multiplier": -1.19,
    "lm_head_multiplier": 1.23, "mamba_chunk_size": 5, "mamba_conv_bias": true, "mamba_d_conv": 3, "mamba_d_head": 5,
    "mamba_d_ssm": 45, "mamba_d_state": 7, "mamba_expand": 2, "mamba_n_groups": 3, "mamba_n_heads": 9,
    "mamba_norm_before_gate": false, "mamba_proj_bias": true, "mamba_rms_norm": true, "max_position_embeddings": 64,
    "mlp_bias": true, "mlp_multipliers": [1.43, 0.97], "model_type": "falcon_h1", "num_attention_heads": 3,
    "num_hidden_layers": 1, "num_key_value_heads": 1, "num_logits_to_keep": 1, "pad_token_id": 0,
    "projectors_bias": true, "rms_norm_eps": 0.003,
    "rope_parameters": {"factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 500.0, "rope_type": "yarn"},
    "ssm_in_multiplier": 0.93, "ssm_multipliers": [0.81, 1.27, -0.91, 1.07, 1.37], "ssm_out_multiplier": 1.61,
    "tie_word_embeddings": false, "time_step_limit": [0.05, {"__float__": "Infinity"}],
    "transformers_version": "5.24.0", "use_cache": true, "vocab_size": 53})");
}

FalconH1Fields fields_with(const std::string& field, const Json& value) {
  return falcon_h1_fields(config_of("falcon_h1", with(saved(), field, value)));
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("falcon_h1", saved(), field, value, parts);
}

TEST(FalconH1Fields, DefaultsAreTheOriginals) {
  const FalconH1Fields f = falcon_h1_fields(config_of("falcon_h1", Json::object()));
  EXPECT_EQ(f.vocab_size, 128000);
  EXPECT_EQ(f.hidden_size, 4096);
  EXPECT_EQ(f.num_hidden_layers, 32);
  EXPECT_EQ(f.rms_norm_eps, 1e-5);
  EXPECT_FALSE(f.tie_word_embeddings);
  EXPECT_EQ(f.mixer.intermediate_size, 1024);  // not expand * H
  EXPECT_EQ(f.mixer.heads, 128);
  EXPECT_EQ(f.mixer.head_dim, 8);
  EXPECT_EQ(f.mixer.groups, 1);
  EXPECT_EQ(f.mixer.state_size, 256);
  EXPECT_EQ(f.mixer.chunk_size, 256);
  EXPECT_EQ(f.mixer.gate, Gate::kGateOnly);
  EXPECT_TRUE(f.mixer.has_conv_bias);
  EXPECT_FALSE(f.mixer.has_in_bias);
  EXPECT_FALSE(f.mixer.has_out_bias);
  EXPECT_EQ(f.attention.heads, 32);
  EXPECT_EQ(f.attention.kv_heads, 8);
  EXPECT_EQ(f.attention.head_dim, 128);
  EXPECT_EQ(f.attention.rotary.width, 128);
  EXPECT_EQ(f.attention.rotary.theta, 10000);
  EXPECT_EQ(f.feed_forward.width, 14336);
  for (const double multiplier :
       {f.embedding_multiplier, f.lm_head_multiplier, f.ssm_out_multiplier, f.attention_in_multiplier,
        f.attention_out_multiplier, f.mixer.in_multiplier, f.attention.key_multiplier, f.feed_forward.gate_multiplier,
        f.feed_forward.down_multiplier, f.mixer.multipliers[0], f.mixer.multipliers[4]})
    EXPECT_EQ(multiplier, 1);
}

TEST(FalconH1Fields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("falcon_h1").check(config_of("falcon_h1", saved())));
  EXPECT_NO_THROW(model_spec("falcon_h1").check(config_of("falcon_h1", Json::object())));
}

TEST(FalconH1Fields, EachMultiplierGoesToItsPlace) {
  const FalconH1Fields f = falcon_h1_fields(config_of("falcon_h1", saved()));
  EXPECT_EQ(f.embedding_multiplier, 0.37);
  EXPECT_EQ(f.lm_head_multiplier, 1.23);
  EXPECT_EQ(f.ssm_out_multiplier, 1.61);
  EXPECT_EQ(f.attention_in_multiplier, 0.87);
  EXPECT_EQ(f.attention_out_multiplier, -1.41);
  EXPECT_EQ(f.mixer.in_multiplier, 0.93);
  EXPECT_EQ(f.mixer.multipliers, (std::array<double, 5>{0.81, 1.27, -0.91, 1.07, 1.37}));
  EXPECT_EQ(f.attention.key_multiplier, -1.19);
  EXPECT_EQ(f.feed_forward.gate_multiplier, 1.43);
  EXPECT_EQ(f.feed_forward.down_multiplier, 0.97);
}

TEST(FalconH1Fields, GateByTwoFlags) {
  EXPECT_EQ(falcon_h1_fields(config_of("falcon_h1", saved())).mixer.gate, Gate::kGateThenNorm);
  EXPECT_EQ(fields_with("mamba_norm_before_gate", true).mixer.gate, Gate::kNormThenGate);
  EXPECT_EQ(fields_with("mamba_rms_norm", false).mixer.gate, Gate::kGateOnly);
}

TEST(FalconH1Fields, NullKeepsTheDerivedValue) {
  Json fields = saved();
  fields["mamba_d_ssm"] = nullptr;
  fields["mamba_n_heads"] = 6;
  fields["mamba_d_head"] = "auto";
  const Mamba2MixerShape mixer = falcon_h1_fields(config_of("falcon_h1", fields)).mixer;
  EXPECT_EQ(mixer.intermediate_size, 30);
  EXPECT_EQ(mixer.head_dim, 5);
  EXPECT_EQ(fields_with("num_key_value_heads", nullptr).attention.kv_heads, 3);
}

TEST(FalconH1Fields, LiesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("intermediate_size", -3, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("num_key_value_heads", 2, {"divisor of num_attention_heads = 3"});
  testing::expect_refused("falcon_h1", saved(), "head_dim", 5, {"even number"}, "rope_parameters");
  testing::expect_refused("falcon_h1", saved(), "partial_rotary_factor", 0.4, {"whole heads"}, "rope_parameters");
  expect_refused("key_multiplier", "1", {"finite number"});
  expect_refused("mlp_multipliers", {1}, {"2 finite numbers"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "bamba", {"\"falcon_h1\""});
  expect_refused("mamba_use_mlp", false, {"true"});
  expect_refused("attn_layer_indices", {0}, {"null"});
  expect_refused("ssm_multiplier", 2, {"not a field of falcon_h1", "ssm_multipliers"});
  for (const char* flag : {"attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias", "mamba_conv_bias",
                           "mamba_rms_norm", "mamba_norm_before_gate", "tie_word_embeddings", "use_cache"})
    expect_refused(flag, 1, {"true or false"});
}

TEST(FalconH1Fields, LiesAboutTheMixerAreRefused) {
  expect_refused("mamba_n_heads", 8, {"divisor", "45"});
  expect_refused("mamba_d_head", 6, {"45 / 9 = 5", "got 6"});
  expect_refused("mamba_n_groups", 2, {"divisor of mamba_n_heads = 9"});
  expect_refused("mamba_n_groups", 18, {"divisor of mamba_n_heads = 9"});
  expect_refused("mamba_d_conv", 5, {"from 2 to 4"});
  expect_refused("time_step_limit", {0.6, 0.05}, {"[lo, hi]"});
  expect_refused("ssm_multipliers", {1, 1, 1, 1}, {"5 finite numbers"});
}

// state_dict of FalconH1ForCausalLM (transformers 5.24.0) with the config above.
const std::vector<Row> kOriginal = {
    {"model.embed_tokens.weight", {53, 15}},
    {"model.layers.0.feed_forward.gate_proj.weight", {29, 15}},
    {"model.layers.0.feed_forward.gate_proj.bias", {29}},
    {"model.layers.0.feed_forward.up_proj.weight", {29, 15}},
    {"model.layers.0.feed_forward.up_proj.bias", {29}},
    {"model.layers.0.feed_forward.down_proj.weight", {15, 29}},
    {"model.layers.0.feed_forward.down_proj.bias", {15}},
    {"model.layers.0.mamba.dt_bias", {9}},
    {"model.layers.0.mamba.A_log", {9}},
    {"model.layers.0.mamba.D", {9}},
    {"model.layers.0.mamba.conv1d.weight", {87, 1, 3}},
    {"model.layers.0.mamba.conv1d.bias", {87}},
    {"model.layers.0.mamba.in_proj.weight", {141, 15}},
    {"model.layers.0.mamba.in_proj.bias", {141}},
    {"model.layers.0.mamba.norm.weight", {45}},
    {"model.layers.0.mamba.out_proj.weight", {15, 45}},
    {"model.layers.0.mamba.out_proj.bias", {15}},
    {"model.layers.0.self_attn.q_proj.weight", {18, 15}},
    {"model.layers.0.self_attn.q_proj.bias", {18}},
    {"model.layers.0.self_attn.k_proj.weight", {6, 15}},
    {"model.layers.0.self_attn.k_proj.bias", {6}},
    {"model.layers.0.self_attn.v_proj.weight", {6, 15}},
    {"model.layers.0.self_attn.v_proj.bias", {6}},
    {"model.layers.0.self_attn.o_proj.weight", {15, 18}},
    {"model.layers.0.self_attn.o_proj.bias", {15}},
    {"model.layers.0.input_layernorm.weight", {15}},
    {"model.layers.0.pre_ff_layernorm.weight", {15}},
    {"model.final_layernorm.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(FalconH1Weights, TableIsTheOriginals) { testing::expect_weights(config_of("falcon_h1", saved()), kOriginal); }

TEST(FalconH1Weights, FlagsTakeTensorsAway) {
  Json fields = saved();
  for (const char* name :
       {"attention_bias", "mlp_bias", "projectors_bias", "mamba_proj_bias", "mamba_conv_bias", "mamba_rms_norm"})
    fields[name] = false;
  fields["tie_word_embeddings"] = true;
  const std::vector<Row> expected = testing::rows_without(kOriginal, [](const std::string& name) {
    return name.ends_with(".bias") || name.ends_with("mamba.norm.weight") || name == "lm_head.weight";
  });
  ASSERT_EQ(expected.size(), kOriginal.size() - 12);
  testing::expect_weights(config_of("falcon_h1", fields), expected);
}

TEST(FalconH1Probes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of("falcon_h1", saved()), {
                                                              {"embed", {15}},
                                                              {"layers.0.norm", {15}},
                                                              {"layers.0.mixer.in_proj", {141}},
                                                              {"layers.0.mixer.conv1d", {87}},
                                                              {"layers.0.mixer.dt", {9}},
                                                              {"layers.0.mixer.ssd", {9, 5}},
                                                              {"layers.0.mixer.norm", {45}},
                                                              {"layers.0.mixer.out_proj", {15}},
                                                              {"layers.0.attn.q", {3, 6}},
                                                              {"layers.0.attn.k", {1, 6}},
                                                              {"layers.0.attn.v", {1, 6}},
                                                              {"layers.0.attn.attention", {3, 6}},
                                                              {"layers.0.attn.out_proj", {15}},
                                                              {"layers.0.mixed", {15}},
                                                              {"layers.0.ff_norm", {15}},
                                                              {"layers.0.ff.act", {29}},
                                                              {"layers.0.ff.down_proj", {15}},
                                                              {"layers.0.out", {15}},
                                                              {"norm_f", {15}},
                                                              {"logits", {53}},
                                                              {"layers.0.mixer.conv_state", {87, 3}},
                                                              {"layers.0.mixer.ssm_state", {9, 5, 7}},
                                                              {"layers.0.attn.k_cache", {1, 6}},
                                                              {"layers.0.attn.v_cache", {1, 6}},
                                                          });
}

}  // namespace
}  // namespace assay

#include "cases/spec/models/zamba2.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::Row;
using testing::with;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// config.json as transformers 5.24.0 saves it: two blocks called from layers 0, 2 and 3.
Json saved() {
  return Json::parse(R"({
    "adapter_rank": 3, "add_bias_linear": true, "architectures": ["Zamba2ForCausalLM"], "attention_dropout": 0.0,
    "attention_head_dim": 10, "attention_hidden_size": 30, "bos_token_id": 1, "chunk_size": 5, "dtype": "float32",
    "eos_token_id": 2, "hidden_act": "gelu", "hidden_size": 15, "hybrid_layer_ids": [0, 2, 3],
    "initializer_range": 0.02, "intermediate_size": 29, "kv_channels": 5,
    "layers_block_type": ["hybrid", "linear_attention", "hybrid", "hybrid"], "mamba_d_conv": 3, "mamba_d_state": 7,
    "mamba_expand": 3, "mamba_headdim": 5, "mamba_ngroups": 3, "max_position_embeddings": 64, "model_type": "zamba2",
    "n_mamba_heads": 9, "num_attention_heads": 3, "num_hidden_layers": 4, "num_key_value_heads": 3,
    "num_logits_to_keep": 1, "num_mem_blocks": 2, "num_query_groups": 3, "pad_token_id": 0, "rms_norm_eps": 0.003,
    "rope_parameters": {"factor": 2.5, "rope_theta": 500.0, "rope_type": "linear"}, "tie_word_embeddings": true,
    "time_step_floor": 0.0001, "time_step_max": 0.1, "time_step_min": 0.1, "transformers_version": "5.24.0",
    "use_cache": true, "use_conv_bias": false, "use_long_context": false, "use_mamba_kernels": true,
    "use_mem_eff_path": false, "use_mem_rope": true, "use_shared_attention_adapter": true, "vocab_size": 53})");
}

Zamba2Fields fields_with(const std::string& field, const Json& value, const Json& profile = Json::object()) {
  return zamba2_fields(config_of("zamba2", with(saved(), field, value), profile));
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts,
                    const std::string& blamed = "") {
  testing::expect_refused("zamba2", saved(), field, value, parts, blamed);
}

TEST(Zamba2Fields, DefaultsAreTheOriginals) {
  const Zamba2Fields f = zamba2_fields(config_of("zamba2", Json::object()));
  EXPECT_EQ(f.vocab_size, 32000);
  EXPECT_EQ(f.hidden_size, 2560);
  EXPECT_EQ(f.rms_norm_eps, 1e-5);
  EXPECT_EQ(f.is_hybrid.size(), 54U);
  EXPECT_EQ(f.hybrid, (std::vector<int64_t>{6, 12, 18, 24, 30, 36, 42, 47, 51}));
  EXPECT_EQ(f.num_mem_blocks, 1);
  EXPECT_EQ(f.mixer.intermediate_size, 5120);
  EXPECT_EQ(f.mixer.heads, 8);
  EXPECT_EQ(f.mixer.head_dim, 640);
  EXPECT_EQ(f.mixer.groups, 1);
  EXPECT_EQ(f.mixer.state_size, 64);
  EXPECT_EQ(f.mixer.dt_min, 0.001);
  EXPECT_EQ(f.mixer.dt_max, kInfinity);
  EXPECT_FALSE(f.mixer.has_in_bias);
  EXPECT_EQ(f.shared.attention.in_width, 5120);
  EXPECT_EQ(f.shared.attention.heads, 32);
  EXPECT_EQ(f.shared.attention.kv_heads, 32);
  EXPECT_EQ(f.shared.attention.head_dim, 160);
  EXPECT_NEAR(f.shared.attention.scale, 0.1118033988749895, 1e-15);  // 80^-1/2
  EXPECT_EQ(f.shared.attention.adapter_rank, 0);
  EXPECT_FALSE(f.shared.attention.rotary.is_on());
  EXPECT_EQ(f.shared.feed_forward.width, 10240);
  EXPECT_EQ(f.shared.feed_forward.adapter_rank, 128);
  EXPECT_EQ(f.shared.feed_forward.activation, Activation::kGelu);
}

TEST(Zamba2Fields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("zamba2").check(config_of("zamba2", saved())));
  EXPECT_NO_THROW(model_spec("zamba2").check(config_of("zamba2", Json::object())));
  EXPECT_NO_THROW(model_spec("zamba2").check(config_of("zamba2", with(saved(), "time_step_limit", nullptr))));
}

TEST(Zamba2Fields, TheOrdinalChoosesTheBlock) {
  const Zamba2Fields f = zamba2_fields(config_of("zamba2", saved()));
  EXPECT_EQ(f.ordinal(0), 0);
  EXPECT_EQ(f.ordinal(2), 1);
  EXPECT_EQ(f.ordinal(3), 2);
  EXPECT_EQ(f.first_layer_of_block(0), 0);
  EXPECT_EQ(f.first_layer_of_block(1), 2);  // layer 2 is even, its ordinal is not
  EXPECT_EQ(f.first_layer_of_block(2), 0);
}

TEST(Zamba2Fields, WhatTheOriginalDoesNotRead) {
  const Zamba2Fields f = zamba2_fields(config_of("zamba2", saved()));
  EXPECT_TRUE(f.mixer.has_conv_bias);  // use_conv_bias is false
  EXPECT_EQ(f.mixer.epsilon, 1e-5);    // rms_norm_eps is 0.003
  EXPECT_EQ(f.shared.epsilon, 0.003);
}

TEST(Zamba2Fields, FloorOfDtByProfile) {
  EXPECT_EQ(zamba2_fields(config_of("zamba2", saved())).mixer.dt_min, 0.1);
  const Json floor = {{"dt_floor", "time_step_min"}}, none = {{"dt_floor", "none"}};
  EXPECT_EQ(fields_with("time_step_limit", {0.02, 0.7}, floor).mixer.dt_min, 0.1);
  EXPECT_EQ(fields_with("time_step_limit", {0.02, 0.7}, floor).mixer.dt_max, kInfinity);
  EXPECT_EQ(fields_with("time_step_limit", {0.02, 0.7}, none).mixer.dt_min, 0.02);
  EXPECT_EQ(fields_with("time_step_limit", {0.02, 0.7}, none).mixer.dt_max, 0.7);
  EXPECT_EQ(fields_with("time_step_limit", nullptr, none).mixer.dt_min, 0);
  EXPECT_EQ(fields_with("time_step_limit", nullptr, none).mixer.dt_max, kInfinity);
}

TEST(Zamba2Fields, LiesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("num_hidden_layers", 5, {"5 words"}, "layers_block_type");
  expect_refused("layers_block_type", {"hybrid", "mamba", "attention", "hybrid"}, {"\"linear_attention\""});
  expect_refused("layers_block_type", {"mamba", "mamba", "mamba", "mamba"}, {"at least one"});
  expect_refused("hybrid_layer_ids", {0, 1, 3}, {"[0,2,3]"});
  expect_refused("num_mem_blocks", 0, {"from 1"});
  expect_refused("adapter_rank", 0, {"from 1"});
  expect_refused("num_attention_heads", 4, {"divisor of 2 * hidden_size = 30"});
  expect_refused("num_key_value_heads", 2, {"divisor of num_attention_heads = 3"});
  expect_refused("num_key_value_heads", 1, {"attention adapters"});
  expect_refused("attention_head_dim", 12, {"10"});
  expect_refused("attention_hidden_size", 15, {"30"});
  expect_refused("mamba_headdim", 6, {"5"});
  expect_refused("kv_channels", 6, {"5"});
  expect_refused("n_mamba_heads", 8, {"divisor", "45"});
  expect_refused("mamba_ngroups", 2, {"divisor of n_mamba_heads = 9"});
  expect_refused("mamba_ngroups", 18, {"divisor of n_mamba_heads = 9"});
  expect_refused("mamba_d_conv", 1, {"from 2 to 4"});
  expect_refused("time_step_min", 0, {"above 0"});
  expect_refused("time_step_limit", {0.6, 0.05}, {"[lo, hi]"});
  expect_refused("hidden_act", "silu", {"\"gelu\""});
  expect_refused("model_type", "zamba", {"\"zamba2\""});
  expect_refused("tie_word_embeddings", false, {"true"});
  expect_refused("use_shared_mlp_adapter", false, {"true"});
  expect_refused("partial_rotary_factor", 0.4, {"whole heads"}, "rope_parameters");
  expect_refused("num_mem_block", 2, {"not a field of zamba2", "num_mem_blocks"});
  for (const char* flag : {"add_bias_linear", "use_mem_rope", "use_shared_attention_adapter", "use_cache"})
    expect_refused(flag, 1, {"true or false"});
}

// state_dict of Zamba2ForCausalLM (transformers 5.24.0) with the config above, as it is saved: each block once.
std::vector<Row> original() {
  std::vector<Row> rows = {{"model.embed_tokens.weight", {53, 15}}, {"model.final_layernorm.weight", {15}}};
  for (const std::string layer : {"0.mamba_decoder.", "1.", "2.mamba_decoder.", "3.mamba_decoder."}) {
    const std::string mamba = "model.layers." + layer + "mamba.";
    rows.push_back({"model.layers." + layer + "input_layernorm.weight", {15}});
    for (const char* name : {"A_log", "D", "dt_bias"}) rows.push_back({mamba + name, {9}});
    rows.push_back({mamba + "conv1d.weight", {87, 1, 3}});
    rows.push_back({mamba + "conv1d.bias", {87}});
    rows.push_back({mamba + "in_proj.weight", {141, 15}});
    rows.push_back({mamba + "in_proj.bias", {141}});
    rows.push_back({mamba + "norm.weight", {45}});
    rows.push_back({mamba + "out_proj.weight", {15, 45}});
    rows.push_back({mamba + "out_proj.bias", {15}});
  }
  for (const char* layer : {"0", "2", "3"})
    rows.push_back({std::string("model.layers.") + layer + ".linear.weight", {15, 15}});
  const auto add_block = [&](const std::string& layer, const std::vector<std::string>& ordinals) {
    const std::string block = "model.layers." + layer + ".shared_transformer.";
    rows.push_back({block + "input_layernorm.weight", {30}});
    rows.push_back({block + "pre_ff_layernorm.weight", {15}});
    for (const char* name : {"q", "k", "v"}) rows.push_back({block + "self_attn." + name + "_proj.weight", {30, 30}});
    rows.push_back({block + "self_attn.o_proj.weight", {15, 30}});
    rows.push_back({block + "feed_forward.gate_up_proj.weight", {58, 15}});
    rows.push_back({block + "feed_forward.gate_up_proj.bias", {58}});
    rows.push_back({block + "feed_forward.down_proj.weight", {15, 29}});
    rows.push_back({block + "feed_forward.down_proj.bias", {15}});
    for (const std::string& ordinal : ordinals) {
      rows.push_back({block + "feed_forward.gate_up_proj_adapter_list." + ordinal + ".0.weight", {3, 15}});
      rows.push_back({block + "feed_forward.gate_up_proj_adapter_list." + ordinal + ".1.weight", {58, 3}});
      for (const std::string name : {"q", "k", "v"}) {
        const std::string adapter = block + "self_attn.linear_" + name + "_adapter_list." + ordinal;
        rows.push_back({adapter + ".0.weight", {3, 30}});
        rows.push_back({adapter + ".1.weight", {30, 3}});
      }
    }
  };
  add_block("0", {"0", "2"});
  add_block("2", {"1"});
  return rows;
}

TEST(Zamba2Weights, TableIsTheOriginals) { testing::expect_weights(config_of("zamba2", saved()), original()); }

TEST(Zamba2Weights, FlagsTakeTensorsAway) {
  Json fields = saved();
  fields["add_bias_linear"] = fields["use_shared_attention_adapter"] = false;
  const std::vector<Row> expected = testing::rows_without(original(), [](const std::string& name) {
    return name.ends_with("proj.bias") || name.find("self_attn.linear_") != std::string::npos;
  });
  ASSERT_EQ(expected.size(), original().size() - 30);
  testing::expect_weights(config_of("zamba2", fields), expected);
}

TEST(Zamba2Probes, SharedBlockBeforeTheMixerInHybridLayers) {
  Json fields = saved();
  fields["num_hidden_layers"] = 2;
  fields["layers_block_type"] = {"mamba", "hybrid"};
  std::vector<Row> expected = {{"embed", {15}}};
  const auto add_mixer = [&](const std::string& layer) {
    for (const Row& row :
         {Row{"norm", {15}}, Row{"mixer.in_proj", {141}}, Row{"mixer.conv1d", {87}}, Row{"mixer.dt", {9}},
          Row{"mixer.ssd", {9, 5}}, Row{"mixer.norm", {45}}, Row{"mixer.out_proj", {15}}, Row{"out", {15}}})
      expected.push_back({layer + row.name, row.shape});
  };
  add_mixer("layers.0.");
  for (const Row& row : {Row{"shared_norm", {30}}, Row{"attn.q", {3, 10}}, Row{"attn.k", {3, 10}},
                         Row{"attn.v", {3, 10}}, Row{"attn.attention", {3, 10}}, Row{"attn.out_proj", {15}},
                         Row{"ff_norm", {15}}, Row{"ff.act", {29}}, Row{"ff.down_proj", {15}}, Row{"shared_out", {15}}})
    expected.push_back({"layers.1." + row.name, row.shape});
  add_mixer("layers.1.");
  for (const Row& row : {Row{"norm_f", {15}}, Row{"logits", {53}}, Row{"layers.0.mixer.conv_state", {87, 3}},
                         Row{"layers.0.mixer.ssm_state", {9, 5, 7}}, Row{"layers.1.attn.k_cache", {3, 10}},
                         Row{"layers.1.attn.v_cache", {3, 10}}, Row{"layers.1.mixer.conv_state", {87, 3}},
                         Row{"layers.1.mixer.ssm_state", {9, 5, 7}}})
    expected.push_back(row);
  testing::expect_probes(config_of("zamba2", fields), expected);
}

}  // namespace
}  // namespace assay

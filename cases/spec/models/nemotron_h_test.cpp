#include "cases/spec/models/nemotron_h.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using Layer = NemotronHFields::Layer;

ModelConfig config_of(Json fields) {
  return testing::config_of("nemotron_h", std::move(fields), {{"dt_floor", "time_step_min"}});
}

Json small() {
  return Json::parse(R"({
    "model_type": "nemotron_h", "vocab_size": 53, "hidden_size": 15, "hybrid_override_pattern": "M*-E",
    "layer_norm_epsilon": 0.003, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 7,
    "attention_bias": true, "intermediate_size": 23, "mlp_hidden_act": "relu2", "mlp_bias": true,
    "mamba_num_heads": 9, "mamba_head_dim": 5, "ssm_state_size": 7, "n_groups": 3, "conv_kernel": 3, "chunk_size": 5,
    "expand": 7, "use_conv_bias": true, "use_bias": true, "time_step_min": 0.1, "time_step_limit": [0.05, 0.3],
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 11,
    "moe_shared_expert_intermediate_size": 13, "moe_latent_size": 8, "n_group": 2, "topk_group": 1,
    "norm_topk_prob": false, "routed_scaling_factor": 1.7})");
}

Json with(const std::string& field, Json value) { return testing::with(small(), field, std::move(value)); }

void expect_refused(const Json& fields, const std::string& field, std::initializer_list<std::string> parts) {
  testing::expect_refusal(config_of(fields), "/config/" + field, parts);
}

TEST(NemotronHFields, DefaultsAreTheOriginals) {
  const NemotronHFields f = nemotron_h_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 131072);
  EXPECT_EQ(f.layers, (std::vector<Layer>{Layer::kMamba, Layer::kExperts, Layer::kAttention, Layer::kFeedForward}));
  EXPECT_EQ(f.mixer.intermediate_size, 8192);
  EXPECT_EQ(f.mixer.groups, 8);
  EXPECT_EQ(f.mixer.chunk_size, 128);
  EXPECT_EQ(f.mixer.dt_min, 0.001);
  EXPECT_EQ(f.attention.head_dim, 128);
  EXPECT_EQ(f.attention.kv_heads, 8);
  EXPECT_FALSE(f.attention.rotary.is_on());
  EXPECT_EQ(f.feed_forward.width, 21504);
  EXPECT_EQ(f.feed_forward.activation, Activation::kRelu2);
  EXPECT_EQ(f.experts.count, 8);
  EXPECT_EQ(f.experts.chosen, 2);
  EXPECT_EQ(f.experts.latent, 0);
  EXPECT_EQ(f.experts.epsilon, 1e-20);
  EXPECT_EQ(f.shared.width, 7688);
  EXPECT_NO_THROW(model_spec("nemotron_h").check(config_of(small())));
}

TEST(NemotronHFields, LayersByLetterOrByWord) {
  const auto layers = [](Json fields) { return nemotron_h_fields(config_of(std::move(fields))).layers; };
  const std::vector<Layer> expected = {Layer::kMamba, Layer::kAttention, Layer::kFeedForward, Layer::kExperts};
  EXPECT_EQ(layers(small()), expected);
  EXPECT_EQ(layers(with("num_hidden_layers", nullptr)), expected);
  for (const char* name : {"layers_block_type", "layer_types"}) {
    Json fields = small();
    fields.erase("hybrid_override_pattern");
    fields[name] = {"mamba", "attention", "mlp", "moe"};
    EXPECT_EQ(layers(fields), expected);
    fields[name] = {"linear_attention", "full_attention", "mlp", "moe"};
    EXPECT_EQ(layers(fields), expected);
    expect_refused(with(name, {"mamba", "attention", "mlp", "mlp"}), "hybrid_override_pattern", {name});
  }
  expect_refused(with("hybrid_override_pattern", "M*x"), "hybrid_override_pattern", {"M, *, - and E"});
  expect_refused(with("hybrid_override_pattern", ""), "hybrid_override_pattern", {"M, *, - and E"});
  expect_refused(with("num_hidden_layers", 5), "num_hidden_layers", {"hybrid_override_pattern", "4"});
  expect_refused(with("layers_block_type", {"mamba", "conv"}), "layers_block_type", {"linear_attention"});
}

TEST(NemotronHFields, FloorOfDtIsTheProfiles) {
  ModelConfig config = config_of(small());
  EXPECT_EQ(nemotron_h_fields(config).mixer.dt_min, 0.1);
  EXPECT_EQ(nemotron_h_fields(config).mixer.dt_max, std::numeric_limits<double>::infinity());
  config.profile = {{"dt_floor", "none"}};
  EXPECT_EQ(nemotron_h_fields(config).mixer.dt_min, 0.05);
  EXPECT_EQ(nemotron_h_fields(config).mixer.dt_max, 0.3);
}

TEST(NemotronHFields, EarlierNamesWin) {
  Json fields = small();
  fields["mamba_n_groups"] = 9;
  fields["mamba_d_conv"] = 2;
  fields["mamba_chunk_size"] = 6;
  fields["mamba_conv_bias"] = false;
  fields["mamba_dt_min"] = 0.2;
  const NemotronHFields f = nemotron_h_fields(config_of(fields));
  EXPECT_EQ(f.mixer.groups, 9);
  EXPECT_EQ(f.mixer.conv_kernel, 2);
  EXPECT_EQ(f.mixer.chunk_size, 6);
  EXPECT_FALSE(f.mixer.has_conv_bias);
  EXPECT_EQ(f.mixer.dt_min, 0.2);
  EXPECT_EQ(nemotron_h_fields(config_of(with("num_key_value_heads", nullptr))).attention.kv_heads, 6);
}

TEST(NemotronHFields, LiesAreRefused) {
  expect_refused(with("n_groups", 2), "n_groups", {"divisor of mamba_num_heads = 9"});
  expect_refused(with("mamba_n_groups", 2), "mamba_n_groups", {"divisor of mamba_num_heads = 9"});
  expect_refused(with("num_key_value_heads", 4), "num_key_value_heads", {"divisor"});
  expect_refused(with("n_group", 3), "n_group", {"n_routed_experts = 4"});
  expect_refused(with("n_group", 4), "n_group", {"two experts or more"});
  expect_refused(with("topk_group", 3), "topk_group", {"n_group = 2"});
  expect_refused(with("num_experts_per_tok", 3), "num_experts_per_tok", {"at most 2"});
  expect_refused(with("conv_kernel", 5), "conv_kernel", {"from 2 to 4"});
  expect_refused(with("time_step_min", 0), "time_step_min", {"above 0"});
  expect_refused(with("tie_word_embeddings", true), "tie_word_embeddings", {"false"});
  expect_refused(with("n_shared_experts", 2), "n_shared_experts", {"1"});
  expect_refused(with("num_nextn_predict_layers", 1), "num_nextn_predict_layers", {"0"});
  expect_refused(with("mlp_hidden_act", "relu"), "mlp_hidden_act", {"relu2"});
  expect_refused(with("mamba_hidden_act", "gelu"), "mamba_hidden_act", {"silu"});
  expect_refused(with("attention_bias", 1), "attention_bias", {"true or false"});
  expect_refused(with("n_experts", 4), "n_experts", {"not a field of nemotron_h"});
}

// state_dict of NemotronHForCausalLM (transformers 5.24.0), with the names that it saves: attention_bias adds nothing.
TEST(NemotronHWeights, TableIsTheOriginals) {
  const std::vector<testing::Row> expected = {
      {"backbone.embeddings.weight", {53, 15}},
      {"backbone.layers.0.norm.weight", {15}},
      {"backbone.layers.0.mixer.dt_bias", {9}},
      {"backbone.layers.0.mixer.A_log", {9}},
      {"backbone.layers.0.mixer.D", {9}},
      {"backbone.layers.0.mixer.in_proj.weight", {141, 15}},
      {"backbone.layers.0.mixer.in_proj.bias", {141}},
      {"backbone.layers.0.mixer.conv1d.weight", {87, 1, 3}},
      {"backbone.layers.0.mixer.conv1d.bias", {87}},
      {"backbone.layers.0.mixer.norm.weight", {45}},
      {"backbone.layers.0.mixer.out_proj.weight", {15, 45}},
      {"backbone.layers.0.mixer.out_proj.bias", {15}},
      {"backbone.layers.1.norm.weight", {15}},
      {"backbone.layers.1.mixer.q_proj.weight", {42, 15}},
      {"backbone.layers.1.mixer.k_proj.weight", {21, 15}},
      {"backbone.layers.1.mixer.v_proj.weight", {21, 15}},
      {"backbone.layers.1.mixer.o_proj.weight", {15, 42}},
      {"backbone.layers.2.norm.weight", {15}},
      {"backbone.layers.2.mixer.up_proj.weight", {23, 15}},
      {"backbone.layers.2.mixer.up_proj.bias", {23}},
      {"backbone.layers.2.mixer.down_proj.weight", {15, 23}},
      {"backbone.layers.2.mixer.down_proj.bias", {15}},
      {"backbone.layers.3.norm.weight", {15}},
      {"backbone.layers.3.mixer.gate.weight", {4, 15}},
      {"backbone.layers.3.mixer.gate.e_score_correction_bias", {4}},
      {"backbone.layers.3.mixer.fc1_latent_proj.weight", {8, 15}},
      {"backbone.layers.3.mixer.fc1_latent_proj.bias", {8}},
      {"backbone.layers.3.mixer.fc2_latent_proj.weight", {15, 8}},
      {"backbone.layers.3.mixer.fc2_latent_proj.bias", {15}},
      {"backbone.layers.3.mixer.experts.0.up_proj.weight", {11, 8}},
      {"backbone.layers.3.mixer.experts.0.down_proj.weight", {8, 11}},
      {"backbone.layers.3.mixer.experts.1.up_proj.weight", {11, 8}},
      {"backbone.layers.3.mixer.experts.1.down_proj.weight", {8, 11}},
      {"backbone.layers.3.mixer.experts.2.up_proj.weight", {11, 8}},
      {"backbone.layers.3.mixer.experts.2.down_proj.weight", {8, 11}},
      {"backbone.layers.3.mixer.experts.3.up_proj.weight", {11, 8}},
      {"backbone.layers.3.mixer.experts.3.down_proj.weight", {8, 11}},
      {"backbone.layers.3.mixer.shared_experts.up_proj.weight", {13, 15}},
      {"backbone.layers.3.mixer.shared_experts.up_proj.bias", {13}},
      {"backbone.layers.3.mixer.shared_experts.down_proj.weight", {15, 13}},
      {"backbone.layers.3.mixer.shared_experts.down_proj.bias", {15}},
      {"backbone.norm_f.weight", {15}},
      {"lm_head.weight", {53, 15}},
  };
  testing::expect_weights(config_of(small()), expected);
}

TEST(NemotronHProbes, OneMixerALayer) {
  std::string names, states;
  for (const ProbeSpec& probe : model_spec("nemotron_h").probes(config_of(small()))) {
    if (probe.is_state)
      states += probe.name + " ";
    else if (probe.layer >= 1)
      names += probe.name.substr(7) + " ";
  }
  EXPECT_EQ(names,
            "1.norm 1.attn.q 1.attn.k 1.attn.v 1.attn.attention 1.attn.out_proj 1.out "
            "2.norm 2.ff.act 2.ff.down_proj 2.out "
            "3.norm 3.ff.router 3.ff.routing 3.ff.experts 3.ff.shared.act 3.ff.shared.down_proj 3.ff.out 3.out ");
  EXPECT_EQ(states, "layers.0.mixer.conv_state layers.0.mixer.ssm_state layers.1.attn.k_cache layers.1.attn.v_cache ");
}

}  // namespace
}  // namespace assay

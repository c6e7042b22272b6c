#include "cases/spec/models/bamba.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using testing::Row;

ModelConfig config_of(Json fields) { return testing::config_of("bamba", std::move(fields)); }

// config.json as transformers 5.24.0 saves it; layer 1 is attention.
Json saved() {
  return Json::parse(R"({
    "attention_bias": true, "attention_dropout": 0.0, "attn_layer_indices": [1], "bos_token_id": 1, "eos_token_id": 2,
    "head_dim": 12, "hidden_act": "silu", "hidden_size": 15, "initializer_range": 0.02, "intermediate_size": 22,
    "mamba_chunk_size": 5, "mamba_conv_bias": true, "mamba_d_conv": 3, "mamba_d_head": 5, "mamba_d_state": 7,
    "mamba_expand": 3, "mamba_n_groups": 3, "mamba_n_heads": 9, "mamba_proj_bias": true,
    "max_position_embeddings": 64, "mlp_bias": true, "model_type": "bamba", "num_attention_heads": 6,
    "num_hidden_layers": 2, "num_key_value_heads": 2, "num_logits_to_keep": 1, "pad_token_id": 0, "rms_norm_eps": 0.003,
    "rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0, "rope_type": "default"},
    "tie_word_embeddings": false, "time_step_limit": [0.0, {"__float__": "Infinity"}],
    "transformers_version": "5.24.0", "use_cache": true, "vocab_size": 53, "z_loss_coefficient": 0.0})");
}

void expect_refused(const std::string& field, const Json& value, const std::string& part) {
  testing::expect_refused("bamba", saved(), field, value, {part});
}

TEST(BambaFields, DefaultsAreTheOriginals) {
  const BambaFields f = bamba_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 128000);
  EXPECT_EQ(f.hidden_size, 4096);
  EXPECT_EQ(f.rms_norm_eps, 1e-5);
  EXPECT_FALSE(f.tie_word_embeddings);
  EXPECT_EQ(f.is_attention, std::vector<bool>(32, false));
  EXPECT_EQ(f.mixer.intermediate_size, 8192);
  EXPECT_EQ(f.mixer.epsilon, 1e-5);
  EXPECT_EQ(f.attention.heads, 32);
  EXPECT_EQ(f.attention.kv_heads, 8);
  EXPECT_EQ(f.attention.head_dim, 128);
  EXPECT_EQ(f.attention.rotary.width, 64);
  EXPECT_EQ(f.attention.rotary.theta, 10000);
  EXPECT_EQ(f.feed_forward.width, 14336);
  EXPECT_FALSE(f.feed_forward.has_bias || f.attention.has_bias);
}

TEST(BambaFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("bamba").check(config_of(saved())));
  EXPECT_NO_THROW(model_spec("bamba").check(config_of(Json::object())));
  EXPECT_EQ(bamba_fields(config_of(saved())).is_attention, (std::vector<bool>{false, true}));
}

TEST(BambaFields, HalfOfEachHeadIsRotatedWhateverTheTopLevelSays) {
  Json fields = saved();
  fields.erase("rope_parameters");
  fields["partial_rotary_factor"] = 1.0;
  fields["attn_rotary_emb"] = 6;
  EXPECT_NO_THROW(model_spec("bamba").check(config_of(fields)));
  EXPECT_EQ(bamba_fields(config_of(fields)).attention.rotary.width, 6);
  fields["rope_parameters"] = {{"partial_rotary_factor", 1.0}};
  EXPECT_EQ(bamba_fields(config_of(fields)).attention.rotary.width, 12);
}

TEST(BambaFields, LiesAreRefusedByName) {
  expect_refused("model_type", "mamba2", "\"bamba\"");
  expect_refused("hidden_act", "gelu", "\"silu\"");
  expect_refused("vocab_size", 1, "2");
  expect_refused("hidden_size", -15, "whole number");
  expect_refused("intermediate_size", 0, "whole number");
  expect_refused("num_hidden_layers", 100000, "10000");
  expect_refused("rms_norm_eps", 0, "above 0");
  expect_refused("attn_layer_indices", {2}, "from 0 to 1");
  expect_refused("attn_layer_indices", {1, 1}, "each layer once");
  expect_refused("attn_layer_indices", "all", "list");
  expect_refused("attn_rotary_emb", 12, "6");
  expect_refused("num_key_value_heads", 4, "divisor");
  expect_refused("mamba_n_groups", 2, "divisor");
  expect_refused("mamba_n_heads", 7, "divisor");
  expect_refused("rope_parameters", {{"rope_type", "longrope"}}, "yarn");
  expect_refused("time_step_limit", {1}, "lo <= hi");
  for (const char* flag :
       {"mlp_bias", "attention_bias", "mamba_proj_bias", "mamba_conv_bias", "tie_word_embeddings", "use_cache"})
    expect_refused(flag, 1, "true or false");
  expect_refused("layer_types", {"mamba"}, "not a field of bamba");
  expect_refused("attn_layer_indexes", {1}, "attn_layer_indices");
}

TEST(BambaFields, SizesBeyondMemoryAreRefused) {
  Json fields = saved();
  fields["intermediate_size"] = fields["vocab_size"] = 1 << 30;
  EXPECT_NO_THROW(model_spec("bamba").check(config_of(fields)));
  fields["num_hidden_layers"] = 1000;
  EXPECT_THROW(model_spec("bamba").check(config_of(fields)), InputError);
  for (const char* name :
       {"hidden_size", "mamba_n_heads", "num_attention_heads", "num_key_value_heads", "mamba_d_state"})
    fields[name] = 1 << 30;
  fields["mamba_expand"] = fields["mamba_d_head"] = fields["mamba_n_groups"] = 1;
  EXPECT_THROW(model_spec("bamba").check(config_of(fields)), InputError);
}

// state_dict of BambaForCausalLM (transformers 5.24.0) with the config above.
const std::vector<Row> kOriginal = {
    {"model.embed_tokens.weight", {53, 15}},
    {"model.layers.0.input_layernorm.weight", {15}},
    {"model.layers.0.mamba.dt_bias", {9}},
    {"model.layers.0.mamba.A_log", {9}},
    {"model.layers.0.mamba.D", {9}},
    {"model.layers.0.mamba.in_proj.weight", {141, 15}},
    {"model.layers.0.mamba.in_proj.bias", {141}},
    {"model.layers.0.mamba.conv1d.weight", {87, 1, 3}},
    {"model.layers.0.mamba.conv1d.bias", {87}},
    {"model.layers.0.mamba.norm.weight", {45}},
    {"model.layers.0.mamba.out_proj.weight", {15, 45}},
    {"model.layers.0.mamba.out_proj.bias", {15}},
    {"model.layers.0.pre_ff_layernorm.weight", {15}},
    {"model.layers.0.feed_forward.gate_proj.weight", {22, 15}},
    {"model.layers.0.feed_forward.gate_proj.bias", {22}},
    {"model.layers.0.feed_forward.up_proj.weight", {22, 15}},
    {"model.layers.0.feed_forward.up_proj.bias", {22}},
    {"model.layers.0.feed_forward.down_proj.weight", {15, 22}},
    {"model.layers.0.feed_forward.down_proj.bias", {15}},
    {"model.layers.1.input_layernorm.weight", {15}},
    {"model.layers.1.self_attn.q_proj.weight", {72, 15}},
    {"model.layers.1.self_attn.q_proj.bias", {72}},
    {"model.layers.1.self_attn.k_proj.weight", {24, 15}},
    {"model.layers.1.self_attn.k_proj.bias", {24}},
    {"model.layers.1.self_attn.v_proj.weight", {24, 15}},
    {"model.layers.1.self_attn.v_proj.bias", {24}},
    {"model.layers.1.self_attn.o_proj.weight", {15, 72}},
    {"model.layers.1.self_attn.o_proj.bias", {15}},
    {"model.layers.1.pre_ff_layernorm.weight", {15}},
    {"model.layers.1.feed_forward.gate_proj.weight", {22, 15}},
    {"model.layers.1.feed_forward.gate_proj.bias", {22}},
    {"model.layers.1.feed_forward.up_proj.weight", {22, 15}},
    {"model.layers.1.feed_forward.up_proj.bias", {22}},
    {"model.layers.1.feed_forward.down_proj.weight", {15, 22}},
    {"model.layers.1.feed_forward.down_proj.bias", {15}},
    {"model.final_layernorm.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(BambaWeights, TableIsTheOriginals) { testing::expect_weights(config_of(saved()), kOriginal); }

TEST(BambaWeights, FlagsTakeTensorsAway) {
  Json fields = saved();
  for (const char* name : {"attention_bias", "mlp_bias", "mamba_proj_bias", "mamba_conv_bias"}) fields[name] = false;
  fields["tie_word_embeddings"] = true;
  testing::expect_weights(config_of(fields), testing::rows_without(kOriginal, [](const std::string& name) {
                            return (name.ends_with("bias") && !name.ends_with("dt_bias")) || name == "lm_head.weight";
                          }));
}

TEST(BambaProbes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of(saved()), {
                                                 {"embed", {15}},
                                                 {"layers.0.norm", {15}},
                                                 {"layers.0.mixer.in_proj", {141}},
                                                 {"layers.0.mixer.conv1d", {87}},
                                                 {"layers.0.mixer.dt", {9}},
                                                 {"layers.0.mixer.ssd", {9, 5}},
                                                 {"layers.0.mixer.norm", {45}},
                                                 {"layers.0.mixer.out_proj", {15}},
                                                 {"layers.0.mixed", {15}},
                                                 {"layers.0.ff_norm", {15}},
                                                 {"layers.0.ff.act", {22}},
                                                 {"layers.0.ff.down_proj", {15}},
                                                 {"layers.0.out", {15}},
                                                 {"layers.1.norm", {15}},
                                                 {"layers.1.attn.q", {6, 12}},
                                                 {"layers.1.attn.k", {2, 12}},
                                                 {"layers.1.attn.v", {2, 12}},
                                                 {"layers.1.attn.attention", {6, 12}},
                                                 {"layers.1.attn.out_proj", {15}},
                                                 {"layers.1.mixed", {15}},
                                                 {"layers.1.ff_norm", {15}},
                                                 {"layers.1.ff.act", {22}},
                                                 {"layers.1.ff.down_proj", {15}},
                                                 {"layers.1.out", {15}},
                                                 {"norm_f", {15}},
                                                 {"logits", {53}},
                                                 {"layers.0.mixer.conv_state", {87, 3}},
                                                 {"layers.0.mixer.ssm_state", {9, 5, 7}},
                                                 {"layers.1.attn.k_cache", {2, 12}},
                                                 {"layers.1.attn.v_cache", {2, 12}},
                                             });
}

}  // namespace
}  // namespace assay

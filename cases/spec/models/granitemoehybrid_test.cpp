#include "cases/spec/models/granitemoehybrid.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using testing::Row;
using testing::with;

ModelConfig config_of(Json fields) { return testing::config_of("granitemoehybrid", std::move(fields)); }

// config.json as transformers 5.24.0 saves it.
Json saved() {
  return Json::parse(R"({
    "attention_bias": true, "attention_dropout": 0.0, "attention_multiplier": 0.41, "bos_token_id": 1,
    "embedding_multiplier": 1.7, "eos_token_id": 2, "head_dim": 4, "hidden_act": "silu", "hidden_size": 15,
    "initializer_range": 0.02, "intermediate_size": 7, "layer_types": ["linear_attention", "full_attention"],
    "logits_scaling": 0.37, "mamba_chunk_size": 5, "mamba_conv_bias": true, "mamba_d_conv": 3, "mamba_d_head": 5,
    "mamba_d_state": 7, "mamba_expand": 3, "mamba_n_groups": 3, "mamba_n_heads": 9, "mamba_proj_bias": true,
    "max_position_embeddings": 64, "model_type": "granitemoehybrid", "num_attention_heads": 6,
    "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 3,
    "output_router_logits": false, "pad_token_id": null, "position_embedding_type": "rope",
    "residual_multiplier": 0.83, "rms_norm_eps": 0.003,
    "rope_parameters": {"rope_theta": 50.0, "rope_type": "default"}, "router_aux_loss_coef": 0.001,
    "shared_intermediate_size": 11, "tie_word_embeddings": false,
    "time_step_limit": [0.0, {"__float__": "Infinity"}], "transformers_version": "5.24.0", "use_cache": true,
    "vocab_size": 53})");
}

GraniteMoeHybridFields fields_with(const std::string& field, const Json& value) {
  return granitemoehybrid_fields(config_of(with(saved(), field, value)));
}

void expect_refused(const std::string& field, const Json& value, const std::string& part) {
  testing::expect_refused("granitemoehybrid", saved(), field, value, {part});
}

TEST(GraniteMoeHybridFields, DefaultsAreTheOriginals) {
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 32000);
  EXPECT_EQ(f.rms_norm_eps, 1e-6);
  EXPECT_EQ(f.is_attention, std::vector<bool>(32, false));
  EXPECT_EQ(f.attention.kv_heads, 32);
  EXPECT_EQ(f.attention.scale, 1);
  EXPECT_FALSE(f.attention.rotary.is_on());
  EXPECT_EQ(f.experts.count, 8);
  EXPECT_EQ(f.experts.chosen, 2);
  EXPECT_EQ(f.experts.width, 11008);
  EXPECT_EQ(f.experts.router, ExpertsShape::Router::kTopKSoftmax);
  EXPECT_EQ(f.shared.width, 1024);
  EXPECT_EQ(f.embedding_multiplier * f.residual_multiplier * f.logits_scaling, 1);
}

TEST(GraniteMoeHybridFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("granitemoehybrid").check(config_of(saved())));
  EXPECT_NO_THROW(model_spec("granitemoehybrid").check(config_of(Json::object())));
  const GraniteMoeHybridFields f = granitemoehybrid_fields(config_of(saved()));
  EXPECT_EQ(f.attention.scale, 0.41);
  EXPECT_EQ(f.embedding_multiplier, 1.7);
  EXPECT_EQ(f.residual_multiplier, 0.83);
  EXPECT_EQ(f.logits_scaling, 0.37);
  EXPECT_EQ(f.attention.rotary.width, 4);
  EXPECT_EQ(f.attention.rotary.theta, 50);
}

TEST(GraniteMoeHybridFields, LayerKindsInBothSpellingsUnderBothNames) {
  const std::vector<bool> expected = {false, true};
  EXPECT_EQ(fields_with("layer_types", {"mamba", "attention"}).is_attention, expected);
  EXPECT_EQ(fields_with("layer_types", {"linear_attention", "full_attention"}).is_attention, expected);
  EXPECT_EQ(fields_with("layer_types", nullptr).is_attention, std::vector<bool>(2, false));
  Json fields = saved();
  fields.erase("layer_types");
  fields["layers_block_type"] = {"mamba", "attention"};
  EXPECT_EQ(granitemoehybrid_fields(config_of(fields)).is_attention, expected);
}

TEST(GraniteMoeHybridFields, PositionsOnlyWhereAskedFor) {
  EXPECT_FALSE(fields_with("position_embedding_type", nullptr).attention.rotary.is_on());
  EXPECT_FALSE(fields_with("position_embedding_type", "nope").attention.rotary.is_on());
  Json fields = saved();  // a head of odd width cannot be rotated, and need not be
  fields["head_dim"] = 5;
  fields["position_embedding_type"] = "nope";
  EXPECT_NO_THROW(model_spec("granitemoehybrid").check(config_of(fields)));
}

TEST(GraniteMoeHybridFields, LiesAreRefusedByName) {
  expect_refused("model_type", "granite", "\"granitemoehybrid\"");
  expect_refused("hidden_act", "gelu", "\"silu\"");
  expect_refused("layer_types", {"mamba"}, "2 words");
  expect_refused("layer_types", {"mamba", "conv"}, "\"linear_attention\"");
  expect_refused("layers_block_type", {"mamba", "mamba"}, "one list");
  expect_refused("num_experts_per_tok", 4, "at most num_local_experts = 3");
  expect_refused("num_experts_per_tok", 0, "from 1");
  expect_refused("num_local_experts", -1, "whole number");
  expect_refused("intermediate_size", 0, "whole number");
  expect_refused("shared_intermediate_size", 0, "whole number");
  expect_refused("position_embedding_type", "alibi", "\"rope\"");
  expect_refused("rope_parameters", {{"partial_rotary_factor", 0.5}}, "whole head");
  expect_refused("num_key_value_heads", 4, "divisor");
  expect_refused("mamba_n_groups", 2, "divisor");
  expect_refused("mamba_d_head", 6, "mamba_expand");
  for (const char* name : {"embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"}) {
    expect_refused(name, 0, "above 0");
    expect_refused(name, "1", "above 0");
  }
  for (const char* flag : {"attention_bias", "mamba_proj_bias", "mamba_conv_bias", "tie_word_embeddings", "use_cache",
                           "output_router_logits"})
    expect_refused(flag, 1, "true or false");
  expect_refused("mlp_bias", true, "not a field of granitemoehybrid");
}

TEST(GraniteMoeHybridFields, SizesBeyondMemoryAreRefused) {
  Json fields = saved();
  fields["num_local_experts"] = 1 << 30;
  EXPECT_NO_THROW(model_spec("granitemoehybrid").check(config_of(fields)));
  fields["intermediate_size"] = 1 << 30;
  EXPECT_THROW(model_spec("granitemoehybrid").check(config_of(fields)), InputError);
}

// A released checkpoint's names (models.md M6) with the config above.
const std::vector<Row> kReleased = {
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
    {"model.layers.0.post_attention_layernorm.weight", {15}},
    {"model.layers.0.block_sparse_moe.router.layer.weight", {3, 15}},
    {"model.layers.0.block_sparse_moe.input_linear.weight", {3, 14, 15}},
    {"model.layers.0.block_sparse_moe.output_linear.weight", {3, 15, 7}},
    {"model.layers.0.shared_mlp.input_linear.weight", {22, 15}},
    {"model.layers.0.shared_mlp.output_linear.weight", {15, 11}},
    {"model.layers.1.input_layernorm.weight", {15}},
    {"model.layers.1.self_attn.q_proj.weight", {24, 15}},
    {"model.layers.1.self_attn.q_proj.bias", {24}},
    {"model.layers.1.self_attn.k_proj.weight", {8, 15}},
    {"model.layers.1.self_attn.k_proj.bias", {8}},
    {"model.layers.1.self_attn.v_proj.weight", {8, 15}},
    {"model.layers.1.self_attn.v_proj.bias", {8}},
    {"model.layers.1.self_attn.o_proj.weight", {15, 24}},
    {"model.layers.1.self_attn.o_proj.bias", {15}},
    {"model.layers.1.post_attention_layernorm.weight", {15}},
    {"model.layers.1.block_sparse_moe.router.layer.weight", {3, 15}},
    {"model.layers.1.block_sparse_moe.input_linear.weight", {3, 14, 15}},
    {"model.layers.1.block_sparse_moe.output_linear.weight", {3, 15, 7}},
    {"model.layers.1.shared_mlp.input_linear.weight", {22, 15}},
    {"model.layers.1.shared_mlp.output_linear.weight", {15, 11}},
    {"model.norm.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(GraniteMoeHybridWeights, TableIsTheReleasedOne) { testing::expect_weights(config_of(saved()), kReleased); }

TEST(GraniteMoeHybridWeights, NoExpertsAndATiedHead) {
  Json fields = saved();
  fields["num_local_experts"] = fields["num_experts_per_tok"] = 0;
  fields["tie_word_embeddings"] = true;
  testing::expect_weights(config_of(fields), testing::rows_without(kReleased, [](const std::string& name) {
                            return name.find("block_sparse_moe") != std::string::npos || name == "lm_head.weight";
                          }));
}

std::vector<std::string> probe_names(const Json& fields) {
  std::vector<std::string> names;
  for (const ProbeSpec& probe : model_spec("granitemoehybrid").probes(config_of(fields))) names.push_back(probe.name);
  return names;
}

TEST(GraniteMoeHybridProbes, RoutedThenShared) {
  const auto names = probe_names(saved());
  const std::vector<std::string> first(names.begin(), names.begin() + 16);
  EXPECT_EQ(first, (std::vector<std::string>{
                       "embed", "layers.0.norm", "layers.0.mixer.in_proj", "layers.0.mixer.conv1d", "layers.0.mixer.dt",
                       "layers.0.mixer.ssd", "layers.0.mixer.norm", "layers.0.mixer.out_proj", "layers.0.mixed",
                       "layers.0.ff_norm", "layers.0.ff.router", "layers.0.ff.routing", "layers.0.ff.experts",
                       "layers.0.ff.shared.act", "layers.0.ff.shared.down_proj", "layers.0.out"}));
  const std::vector<std::string> last(names.end() - 6, names.end());
  EXPECT_EQ(last, (std::vector<std::string>{"norm_f", "logits", "layers.0.mixer.conv_state", "layers.0.mixer.ssm_state",
                                            "layers.1.attn.k_cache", "layers.1.attn.v_cache"}));
}

TEST(GraniteMoeHybridProbes, WithoutExpertsTheSharedPartAlone) {
  Json fields = saved();
  fields["num_local_experts"] = fields["num_experts_per_tok"] = 0;
  const auto names = probe_names(fields);
  for (const std::string& name : names) EXPECT_EQ(name.find("rout"), std::string::npos) << name;
  EXPECT_EQ(names.size(), probe_names(saved()).size() - 6);
}

}  // namespace
}  // namespace assay

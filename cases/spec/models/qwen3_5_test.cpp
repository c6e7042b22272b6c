#include "cases/spec/models/qwen3_5.hpp"

#include <gtest/gtest.h>

#include <map>

#include "cases/spec/models/qwen3_5_moe.hpp"
#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::with;

// The text fields of a released file, and those of a file that has only them.
Json text_of(const std::string& model) {
  Json text = Json::parse(R"({
    "attention_bias": false, "attention_dropout": 0.0, "attn_output_gate": true, "dtype": "bfloat16", "eos_token_id": 2,
    "full_attention_interval": 2, "head_dim": 16, "hidden_act": "silu", "hidden_size": 24, "initializer_range": 0.02,
    "layer_types": ["linear_attention", "full_attention"], "linear_conv_kernel_dim": 4, "linear_key_head_dim": 6,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_value_head_dim": 5, "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 512, "mlp_only_layers": [], "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": false, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06, "use_cache": true, "vocab_size": 56,
    "rope_parameters": {"mrope_interleaved": true, "mrope_section": [1, 1, 0], "partial_rotary_factor": 0.25,
                        "rope_theta": 10000000, "rope_type": "default"}})");
  text["model_type"] = model + "_text";
  if (model == "qwen3_5") {
    text["intermediate_size"] = 20;
  } else {
    text.update({{"num_experts", 3},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 10},
                 {"shared_expert_intermediate_size", 12},
                 {"router_aux_loss_coef", 0.001}});
  }
  return text;
}

Json nested(const std::string& model) {
  return {{"model_type", model},
          {"architectures", {"Qwen3_5ForConditionalGeneration"}},
          {"image_token_id", 50},
          {"text_config", text_of(model)},
          {"vision_config", {{"depth", 1}}},
          {"tie_word_embeddings", false}};
}

void expect_accepted(const std::string& model, const Json& fields) {
  EXPECT_NO_THROW(model_spec(model).check(config_of(model, fields)));
}

void expect_refused(const Json& fields, const std::string& pointer, const std::string& part,
                    const std::string& model = "qwen3_5") {
  testing::expect_refusal(config_of(model, fields), pointer, {part});
}

Json text_with(const std::string& model, const std::string& field, Json value) {
  return with(text_of(model), field, std::move(value));
}

Json nested_with(const std::string& model, const std::string& field, Json value) {
  return with(nested(model), "text_config", text_with(model, field, std::move(value)));
}

TEST(Qwen35Fields, BothFormsAreAccepted) {
  for (const std::string model : {"qwen3_5", "qwen3_5_moe"}) {
    expect_accepted(model, nested(model));
    expect_accepted(model, text_of(model));
  }
}

TEST(Qwen35Fields, DefaultsAreTheOriginals) {
  const QwenBackbone dense = qwen3_5_fields(config_of("qwen3_5", Json::object()));
  EXPECT_EQ(dense.vocab_size, 248320);
  EXPECT_EQ(dense.hidden_size, 4096);
  EXPECT_EQ(dense.num_hidden_layers, 32);
  EXPECT_EQ(dense.attention.kv_heads, 4);
  EXPECT_EQ(dense.attention.rotary.width, 64);
  EXPECT_EQ(dense.dense.width, 12288);
  EXPECT_FALSE(dense.is_routed[0]);
  EXPECT_FALSE(dense.mixer.is_packed);
  const QwenBackbone routed = qwen3_5_moe_fields(config_of("qwen3_5_moe", Json::object()));
  EXPECT_EQ(routed.hidden_size, 2048);
  EXPECT_EQ(routed.num_hidden_layers, 40);
  EXPECT_EQ(routed.attention.kv_heads, 2);
  EXPECT_EQ(routed.experts.count, 256);
  EXPECT_EQ(routed.experts.chosen, 8);
  EXPECT_TRUE(routed.experts.normalises);
  EXPECT_TRUE(routed.is_routed[39]);
}

TEST(Qwen35Fields, WrongValuesAreRefusedWhereTheyStand) {
  expect_refused(nested_with("qwen3_5", "hidden_size", 0), "/config/text_config/hidden_size", "got 0");
  expect_refused(text_with("qwen3_5", "hidden_size", 0), "/config/hidden_size", "got 0");
  expect_refused(nested_with("qwen3_5", "linear_num_value_heads", 3), "/config/text_config/linear_num_value_heads",
                 "multiple of linear_num_key_heads = 2");
  expect_refused(nested_with("qwen3_5", "attn_output_gate", false), "/config/text_config/attn_output_gate", "true");
  expect_refused(nested_with("qwen3_5", "mlp_only_layers", {1}), "/config/text_config/mlp_only_layers", "empty");
  expect_refused(nested_with("qwen3_5", "num_experts", 4), "/config/text_config/num_experts", "not a field of qwen3_5");
  expect_refused(nested_with("qwen3_5", "model_type", "qwen3_5"), "/config/text_config/model_type", "qwen3_5_text");
  expect_refused(nested_with("qwen3_5_moe", "norm_topk_prob", false), "/config/text_config/norm_topk_prob", "true",
                 "qwen3_5_moe");
  expect_refused(text_with("qwen3_5_moe", "num_experts_per_tok", 4), "/config/num_experts_per_tok",
                 "at most num_experts = 3", "qwen3_5_moe");
  expect_refused(text_with("qwen3_5_moe", "intermediate_size", 4), "/config/intermediate_size",
                 "not a field of qwen3_5_moe", "qwen3_5_moe");
}

TEST(Qwen35Fields, TheWrapperIsChecked) {
  Json fields = nested("qwen3_5");
  fields["hidden_size"] = 24;
  expect_refused(fields, "/config/hidden_size", "not a field of qwen3_5");
  fields = nested("qwen3_5");
  fields["tie_word_embeddings"] = true;
  expect_refused(fields, "/config/tie_word_embeddings", "what text_config has, false");
  fields["text_config"]["tie_word_embeddings"] = true;
  expect_accepted("qwen3_5", fields);
  fields = nested("qwen3_5");
  fields["text_config"] = "qwen3_5_text";
  expect_refused(fields, "/config/text_config", "an object");
  fields = text_of("qwen3_5");
  fields.erase("model_type");
  expect_refused(fields, "/config/model_type", "qwen3_5_text");
  expect_refused(text_with("qwen3_5", "model_type", "qwen3_5"), "/config/model_type", "qwen3_5_text");
}

TEST(Qwen35Fields, SectionsAreThreePartsOfTheRotatedPairs) {
  for (const Json& wrong : std::vector<Json>{{1, 1, 1}, {2, 0}, {3, -1, 0}, {1.0, 1.0, 0.0}, "1, 1, 0"}) {
    Json text = text_of("qwen3_5");
    text["rope_parameters"]["mrope_section"] = wrong;
    expect_refused(text, "/config/rope_parameters", "add up to 2");
  }
}

std::map<std::string, Shape> shapes_of(const std::string& model, const Json& fields) {
  return testing::shapes_of(config_of(model, fields));
}

TEST(Qwen35Weights, NamesFollowTheForm) {
  const auto released = shapes_of("qwen3_5", nested("qwen3_5")), text_only = shapes_of("qwen3_5", text_of("qwen3_5"));
  EXPECT_EQ(released.size(), text_only.size());
  EXPECT_TRUE(released.contains("lm_head.weight"));
  for (const auto& [name, shape] : released) {
    if (name == "lm_head.weight") continue;
    ASSERT_EQ(name.find("model.language_model."), 0U) << name;
    const std::string plain = "model." + name.substr(std::string("model.language_model.").size());
    ASSERT_TRUE(text_only.contains(plain)) << plain;
    EXPECT_EQ(text_only.at(plain), shape) << plain;
  }
}

TEST(Qwen35Weights, PlainProjections) {
  const auto shapes = shapes_of("qwen3_5", text_of("qwen3_5"));
  const std::string mixer = "model.layers.0.linear_attn.";
  EXPECT_EQ(shapes.at(mixer + "in_proj_qkv.weight"), (Shape{2 * 2 * 6 + 4 * 5, 24}));
  EXPECT_EQ(shapes.at(mixer + "in_proj_z.weight"), (Shape{20, 24}));
  EXPECT_EQ(shapes.at(mixer + "in_proj_b.weight"), (Shape{4, 24}));
  EXPECT_EQ(shapes.at(mixer + "in_proj_a.weight"), (Shape{4, 24}));
  EXPECT_EQ(shapes.at("model.layers.1.mlp.gate_proj.weight"), (Shape{20, 24}));
  // 3 ends; a layer has 2 norms and 3 of the dense part; the mixer 9, attention 6.
  EXPECT_EQ(shapes.size(), 3U + 2 * 5 + 9 + 6);
}

TEST(Qwen35Weights, StackedExperts) {
  const auto shapes = shapes_of("qwen3_5_moe", nested("qwen3_5_moe"));
  const std::string part = "model.language_model.layers.1.mlp.";
  EXPECT_EQ(shapes.at(part + "gate.weight"), (Shape{3, 24}));
  EXPECT_EQ(shapes.at(part + "experts.gate_up_proj"), (Shape{3, 20, 24}));
  EXPECT_EQ(shapes.at(part + "experts.down_proj"), (Shape{3, 24, 10}));
  EXPECT_EQ(shapes.at(part + "shared_expert.gate_proj.weight"), (Shape{12, 24}));
  EXPECT_EQ(shapes.at(part + "shared_expert_gate.weight"), (Shape{1, 24}));
  EXPECT_EQ(shapes.size(), 3U + 2 * (2 + 3 + 3 + 1) + 9 + 6);
}

}  // namespace
}  // namespace assay

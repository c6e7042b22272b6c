#include "cases/spec/models/zamba.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::Row;
using testing::with;
using Layer = ZambaFields::Layer;

// config.json as transformers 5.24.0 saves it: one recurrent layer between two hybrid ones.
Json saved() {
  return Json::parse(R"({
    "attention_dropout": 0.0, "attention_head_dim": 7, "attention_hidden_size": 30, "attn_layer_offset": 4,
    "attn_layer_period": 6, "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "gelu", "hidden_mamba_act": "silu",
    "hidden_size": 15, "initializer_range": 0.02, "intermediate_size": 11,
    "layers_block_type": ["hybrid", "linear_attention", "hybrid"], "mamba_conv_bias": true, "mamba_d_conv": 3,
    "mamba_d_state": 7, "mamba_dt_rank": 4, "mamba_expand": 3, "mamba_proj_bias": true, "max_position_embeddings": 4096,
    "model_type": "zamba", "n_mamba_heads": 5, "num_attention_heads": 6, "num_hidden_layers": 3,
    "num_key_value_heads": 3, "num_logits_to_keep": 1, "pad_token_id": 0, "rms_norm_eps": 0.003,
    "tie_word_embeddings": true, "time_step_floor": 0.0001, "time_step_max": 0.1, "time_step_min": 0.001,
    "transformers_version": "5.24.0", "use_associative_scan": true, "use_cache": true, "use_mamba_kernels": true,
    "vocab_size": 53})");
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("zamba", saved(), field, value, parts);
}

TEST(ZambaFields, DefaultsAreTheOriginals) {
  const ZambaFields f = zamba_fields(config_of("zamba", Json::object()));
  EXPECT_EQ(f.vocab_size, 32000);
  EXPECT_EQ(f.hidden_size, 3712);
  EXPECT_EQ(f.epsilon, 1e-5);
  EXPECT_EQ(f.mixer.intermediate_size, 7424);
  EXPECT_EQ(f.mixer.heads, 2);
  EXPECT_EQ(f.mixer.state_size, 16);
  EXPECT_EQ(f.mixer.conv_kernel, 4);
  EXPECT_EQ(f.mixer.time_step_rank, 232);  // of all heads together
  EXPECT_EQ(f.mixer.selection_norm, MambaMixerShape::SelectionNorm::kNone);
  EXPECT_FALSE(f.mixer.has_bias);
  EXPECT_TRUE(f.mixer.has_conv_bias);
  EXPECT_EQ(f.shared.attention.in_width, 7424);
  EXPECT_EQ(f.shared.attention.heads, 16);
  EXPECT_EQ(f.shared.attention.kv_heads, 16);
  EXPECT_EQ(f.shared.attention.head_dim, 464);
  EXPECT_DOUBLE_EQ(f.shared.attention.scale, 0.06565321642986127);  // 232^-1/2
  EXPECT_FALSE(f.shared.attention.rotary.is_on());
  EXPECT_EQ(f.shared.feed_forward.width, 14848);
  EXPECT_EQ(f.shared.feed_forward.activation, Activation::kGelu);
}

// models.md M14: hybrid layers 2, 7, 13, 19, ..., 73 of 76.
TEST(ZambaFields, LayerKindsByDefault) {
  const ZambaFields f = zamba_fields(config_of("zamba", Json::object()));
  ASSERT_EQ(f.layers.size(), 76u);
  for (int64_t l = 0; l < 76; ++l) EXPECT_EQ(f.is_hybrid(l), l == 2 || (l >= 7 && l % 6 == 1)) << l;
  EXPECT_EQ(f.shared_prefix(), "model.layers.2.shared_transf.");
}

TEST(ZambaFields, LayerKindsInBothSpellings) {
  const ZambaFields f =
      zamba_fields(config_of("zamba", with(saved(), "layers_block_type", {"mamba", "linear_attention", "hybrid"})));
  EXPECT_EQ(f.layers, (std::vector<Layer>{Layer::kRecurrent, Layer::kRecurrent, Layer::kHybrid}));
  EXPECT_EQ(f.decoder(1), "model.layers.1.");
  EXPECT_EQ(f.decoder(2), "model.layers.2.mamba_decoder.");
}

TEST(ZambaFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("zamba").check(config_of("zamba", saved())));
  EXPECT_NO_THROW(model_spec("zamba").check(config_of("zamba", Json::object())));
}

TEST(ZambaFields, LiesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("intermediate_size", -3, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("num_key_value_heads", 4, {"divisor of num_attention_heads = 6"});
  expect_refused("attention_hidden_size", 31, {"2 * hidden_size = 30"});
  expect_refused("attention_head_dim", 0, {"from 1"});
  expect_refused("n_mamba_heads", 2, {"divisor of mamba_expand * hidden_size = 45"});
  expect_refused("layers_block_type", {"hybrid", "mamba"}, {"3 words"});
  expect_refused("layers_block_type", {"hybrid", "mamba", "attention"}, {"\"linear_attention\""});
  expect_refused("layers_block_type", {"mamba", "mamba", "mamba"}, {"a hybrid layer"});
  expect_refused("mamba_d_conv", 5, {"from 2 to 4"});
  expect_refused("mamba_dt_rank", "four", {"\"auto\""});
  expect_refused("rms_norm_eps", 0, {"above 0"});
  expect_refused("hidden_act", "relu", {"\"gelu\""});
  expect_refused("hidden_mamba_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "zamba2", {"\"zamba\""});
  expect_refused("num_mem_blocks", 2, {"not a field of zamba"});
  for (const char* flag : {"mamba_conv_bias", "mamba_proj_bias", "tie_word_embeddings", "use_cache"})
    expect_refused(flag, 1, {"true or false"});
}

TEST(ZambaFields, UntiedIsRefusedWithItsReason) {
  expect_refused("tie_word_embeddings", false, {"shares its transformer block only then"});
}

TEST(ZambaFields, FewLayersNeedTheirKinds) {
  Json fields = saved();
  fields.erase("layers_block_type");
  testing::expect_refused("zamba", fields, "num_hidden_layers", 2, {"3 or more"});
}

// The released names, models.md M14: the shared block once, at the first hybrid layer.
const std::vector<Row> kReleased = {
    {"model.embed_tokens.weight", {53, 15}},
    {"model.layers.0.shared_transf.input_layernorm.weight", {30}},
    {"model.layers.0.shared_transf.self_attn.q_proj.weight", {42, 30}},
    {"model.layers.0.shared_transf.self_attn.k_proj.weight", {21, 30}},
    {"model.layers.0.shared_transf.self_attn.v_proj.weight", {21, 30}},
    {"model.layers.0.shared_transf.self_attn.o_proj.weight", {15, 42}},
    {"model.layers.0.shared_transf.pre_ff_layernorm.weight", {15}},
    {"model.layers.0.shared_transf.feed_forward.gate_proj.weight", {11, 15}},
    {"model.layers.0.shared_transf.feed_forward.up_proj.weight", {11, 15}},
    {"model.layers.0.shared_transf.feed_forward.down_proj.weight", {15, 11}},
    {"model.layers.0.linear.weight", {15, 15}},
    {"model.layers.2.linear.weight", {15, 15}},
    {"model.final_layernorm.weight", {15}},
};

TEST(ZambaWeights, TableIsTheReleasedOne) {
  std::vector<Row> expected = kReleased;
  for (const std::string decoder :
       {"model.layers.0.mamba_decoder.", "model.layers.1.", "model.layers.2.mamba_decoder."}) {
    const std::string mixer = decoder + "mamba.";
    for (const Row& row : std::vector<Row>{{decoder + "input_layernorm.weight", {15}},
                                           {mixer + "in_proj.weight", {90, 15}},
                                           {mixer + "in_proj.bias", {90}},
                                           {mixer + "conv1d.weight", {45, 1, 3}},
                                           {mixer + "conv1d.bias", {45}},
                                           {mixer + "x_proj_weight", {5, 18, 9}},
                                           {mixer + "dt_proj_weight", {5, 9, 4}},
                                           {mixer + "dt_proj_bias", {5, 9}},
                                           {mixer + "A_log", {5, 9, 7}},
                                           {mixer + "D", {5, 9}},
                                           {mixer + "out_proj.weight", {15, 45}},
                                           {mixer + "out_proj.bias", {15}}})
      expected.push_back(row);
  }
  testing::expect_weights(config_of("zamba", saved()), expected);
}

TEST(ZambaProbes, InOrderOfComputationThenStates) {
  Json fields = saved();
  fields["layers_block_type"] = {"linear_attention", "hybrid"};
  fields["num_hidden_layers"] = 2;
  testing::expect_probes(config_of("zamba", fields), {
                                                         {"embed", {15}},
                                                         {"layers.0.norm", {15}},
                                                         {"layers.0.mixer.in_proj", {90}},
                                                         {"layers.0.mixer.conv1d", {45}},
                                                         {"layers.0.mixer.selection", {5, 14}},
                                                         {"layers.0.mixer.dt", {5, 9}},
                                                         {"layers.0.mixer.scan", {5, 9}},
                                                         {"layers.0.mixer.gate", {45}},
                                                         {"layers.0.mixer.out_proj", {15}},
                                                         {"layers.0.out", {15}},
                                                         {"layers.1.shared_norm", {30}},
                                                         {"layers.1.attn.q", {6, 7}},
                                                         {"layers.1.attn.k", {3, 7}},
                                                         {"layers.1.attn.v", {3, 7}},
                                                         {"layers.1.attn.attention", {6, 7}},
                                                         {"layers.1.attn.out_proj", {15}},
                                                         {"layers.1.ff_norm", {15}},
                                                         {"layers.1.ff.act", {11}},
                                                         {"layers.1.ff.down_proj", {15}},
                                                         {"layers.1.shared_out", {15}},
                                                         {"layers.1.norm", {15}},
                                                         {"layers.1.mixer.in_proj", {90}},
                                                         {"layers.1.mixer.conv1d", {45}},
                                                         {"layers.1.mixer.selection", {5, 14}},
                                                         {"layers.1.mixer.dt", {5, 9}},
                                                         {"layers.1.mixer.scan", {5, 9}},
                                                         {"layers.1.mixer.gate", {45}},
                                                         {"layers.1.mixer.out_proj", {15}},
                                                         {"layers.1.out", {15}},
                                                         {"norm_f", {15}},
                                                         {"logits", {53}},
                                                         {"layers.0.mixer.conv_state", {45, 3}},
                                                         {"layers.0.mixer.ssm_state", {5, 9, 7}},
                                                         {"layers.1.attn.k_cache", {3, 7}},
                                                         {"layers.1.attn.v_cache", {3, 7}},
                                                         {"layers.1.mixer.conv_state", {45, 3}},
                                                         {"layers.1.mixer.ssm_state", {5, 9, 7}},
                                                     });
}

}  // namespace
}  // namespace assay

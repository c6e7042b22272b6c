#include "cases/spec/models/falcon_mamba.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::config_of;
using testing::Json;
using testing::Row;
using testing::with;

// config.json as transformers 5.24.0 saves it.
Json saved() {
  return Json::parse(R"({
    "bos_token_id": 0, "conv_kernel": 3, "eos_token_id": 0, "expand": 3, "hidden_act": "silu", "hidden_size": 15,
    "initializer_range": 0.1, "intermediate_size": 45, "layer_norm_epsilon": 0.003, "mixer_rms_eps": 0.02,
    "model_type": "falcon_mamba", "num_hidden_layers": 1, "pad_token_id": 0, "rescale_prenorm_residual": false,
    "residual_in_fp32": true, "state_size": 7, "tie_word_embeddings": false, "time_step_floor": 0.0001,
    "time_step_init_scheme": "random", "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 4,
    "time_step_scale": 1.0, "transformers_version": "5.24.0", "use_associative_scan": true, "use_bias": true,
    "use_cache": true, "use_conv_bias": true, "use_mambapy": false, "vocab_size": 53})");
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("falcon_mamba", saved(), field, value, parts);
}

TEST(FalconMambaFields, DefaultsAreTheOriginals) {
  const FalconMambaFields f = falcon_mamba_fields(config_of("falcon_mamba", Json::object()));
  EXPECT_EQ(f.backbone.vocab_size, 50280);
  EXPECT_EQ(f.backbone.hidden_size, 768);
  EXPECT_EQ(f.backbone.num_hidden_layers, 32);
  EXPECT_TRUE(f.backbone.tie_word_embeddings);
  EXPECT_EQ(f.layer_norm_epsilon, 1e-5);
  EXPECT_EQ(f.mixer.epsilon, 1e-6);
  EXPECT_EQ(f.mixer.intermediate_size, 1536);
  EXPECT_EQ(f.mixer.state_size, 16);
  EXPECT_EQ(f.mixer.conv_kernel, 4);
  EXPECT_EQ(f.mixer.time_step_rank, 48);
  EXPECT_EQ(f.mixer.heads, 0);
  EXPECT_FALSE(f.mixer.has_bias);
  EXPECT_TRUE(f.mixer.has_conv_bias);
  EXPECT_EQ(f.mixer.selection_norm, MambaMixerShape::SelectionNorm::kWeightless);
}

TEST(FalconMambaFields, EachEpsilonGoesToItsNorm) {
  const FalconMambaFields f = falcon_mamba_fields(config_of("falcon_mamba", saved()));
  EXPECT_EQ(f.layer_norm_epsilon, 0.003);
  EXPECT_EQ(f.mixer.epsilon, 0.02);
}

TEST(FalconMambaFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("falcon_mamba").check(config_of("falcon_mamba", saved())));
  EXPECT_NO_THROW(model_spec("falcon_mamba").check(config_of("falcon_mamba", Json::object())));
  EXPECT_EQ(
      falcon_mamba_fields(config_of("falcon_mamba", with(saved(), "time_step_rank", "auto"))).mixer.time_step_rank, 1);
}

TEST(FalconMambaFields, LiesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("conv_kernel", 5, {"from 2 to 4"});
  expect_refused("state_size", -1, {"got -1"});
  expect_refused("expand", 1.5, {"whole number"});
  expect_refused("expand", 1 << 30, {"expand * hidden_size"});
  expect_refused("time_step_rank", "automatic", {"\"auto\""});
  expect_refused("time_step_rank", 0, {"from 1"});
  expect_refused("mixer_rms_eps", 0, {"above 0"});
  expect_refused("layer_norm_epsilon", -1e-5, {"above 0"});
  expect_refused("intermediate_size", 46, {"45", "got 46"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "mamba", {"\"falcon_mamba\""});
  expect_refused("mixer_rms_epsilon", 1e-6, {"not a field of falcon_mamba", "mixer_rms_eps"});
  for (const char* flag : {"use_bias", "use_conv_bias", "tie_word_embeddings", "residual_in_fp32", "use_cache",
                           "use_mambapy", "use_associative_scan"})
    expect_refused(flag, 1, {"true or false"});
}

// state_dict of FalconMambaForCausalLM (transformers 5.24.0) with the config above: mamba's, since the norms of the
// mixer have no weights.
const std::vector<Row> kOriginal = {
    {"backbone.embeddings.weight", {53, 15}},
    {"backbone.layers.0.norm.weight", {15}},
    {"backbone.layers.0.mixer.A_log", {45, 7}},
    {"backbone.layers.0.mixer.D", {45}},
    {"backbone.layers.0.mixer.conv1d.weight", {45, 1, 3}},
    {"backbone.layers.0.mixer.conv1d.bias", {45}},
    {"backbone.layers.0.mixer.in_proj.weight", {90, 15}},
    {"backbone.layers.0.mixer.in_proj.bias", {90}},
    {"backbone.layers.0.mixer.x_proj.weight", {18, 45}},
    {"backbone.layers.0.mixer.dt_proj.weight", {45, 4}},
    {"backbone.layers.0.mixer.dt_proj.bias", {45}},
    {"backbone.layers.0.mixer.out_proj.weight", {15, 45}},
    {"backbone.layers.0.mixer.out_proj.bias", {15}},
    {"backbone.norm_f.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(FalconMambaWeights, TableIsTheOriginals) {
  testing::expect_weights(config_of("falcon_mamba", saved()), kOriginal);
}

TEST(FalconMambaProbes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of("falcon_mamba", saved()), {
                                                                 {"embed", {15}},
                                                                 {"layers.0.norm", {15}},
                                                                 {"layers.0.mixer.in_proj", {90}},
                                                                 {"layers.0.mixer.conv1d", {45}},
                                                                 {"layers.0.mixer.x_proj", {18}},
                                                                 {"layers.0.mixer.selection", {18}},
                                                                 {"layers.0.mixer.dt", {45}},
                                                                 {"layers.0.mixer.scan", {45}},
                                                                 {"layers.0.mixer.gate", {45}},
                                                                 {"layers.0.mixer.out_proj", {15}},
                                                                 {"layers.0.out", {15}},
                                                                 {"norm_f", {15}},
                                                                 {"logits", {53}},
                                                                 {"layers.0.mixer.conv_state", {45, 3}},
                                                                 {"layers.0.mixer.ssm_state", {45, 7}},
                                                             });
}

}  // namespace
}  // namespace assay

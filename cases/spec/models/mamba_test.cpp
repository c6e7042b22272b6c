#include "cases/spec/models/mamba.hpp"

#include <gtest/gtest.h>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using testing::Row;
using testing::with;

ModelConfig config_of(Json fields) { return testing::config_of("mamba", std::move(fields)); }

// config.json as transformers 5.24.0 saves it.
Json saved() {
  return Json::parse(R"({
    "bos_token_id": 0, "conv_kernel": 3, "eos_token_id": 0, "expand": 3, "hidden_act": "silu", "hidden_size": 15,
    "initializer_range": 0.1, "intermediate_size": 45, "layer_norm_epsilon": 1e-05, "model_type": "mamba",
    "num_hidden_layers": 1, "pad_token_id": 0, "rescale_prenorm_residual": false, "residual_in_fp32": true,
    "state_size": 7, "tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_init_scheme": "random",
    "time_step_max": 0.1, "time_step_min": 0.001, "time_step_rank": 4, "time_step_scale": 1.0,
    "transformers_version": "5.24.0", "use_associative_scan": true, "use_bias": true, "use_cache": true,
    "use_conv_bias": true, "use_mambapy": false, "vocab_size": 53})");
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("mamba", saved(), field, value, parts);
}

TEST(MambaFields, DefaultsAreTheOriginals) {
  const MambaFields f = mamba_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 50280);
  EXPECT_EQ(f.hidden_size, 768);
  EXPECT_EQ(f.intermediate_size, 1536);
  EXPECT_EQ(f.state_size, 16);
  EXPECT_EQ(f.conv_kernel, 4);
  EXPECT_EQ(f.time_step_rank, 48);
  EXPECT_EQ(f.num_hidden_layers, 32);
  EXPECT_EQ(f.layer_norm_epsilon, 1e-5);
  EXPECT_FALSE(f.use_bias);
  EXPECT_TRUE(f.use_conv_bias);
  EXPECT_TRUE(f.tie_word_embeddings);
}

TEST(MambaFields, AutomaticRankRoundsUpAndExpansionDown) {
  EXPECT_EQ(mamba_fields(config_of({{"hidden_size", 17}})).time_step_rank, 2);
  EXPECT_EQ(mamba_fields(config_of({{"hidden_size", 16}, {"time_step_rank", "auto"}})).time_step_rank, 1);
  EXPECT_EQ(mamba_fields(config_of({{"hidden_size", 15}, {"expand", 1.5}})).intermediate_size, 22);
  // 1.1 * 10 is 11.000000000000002 in float64, 0.29 * 100 is 28.999999999999996.
  EXPECT_EQ(mamba_fields(config_of({{"hidden_size", 10}, {"expand", 1.1}})).intermediate_size, 11);
  EXPECT_EQ(mamba_fields(config_of({{"hidden_size", 100}, {"expand", 0.29}})).intermediate_size, 28);
}

TEST(MambaFields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("mamba").check(config_of(saved())));
  EXPECT_NO_THROW(model_spec("mamba").check(config_of(Json::object())));
}

TEST(MambaFields, WrongValuesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("hidden_size", -15, {"got -15"});
  expect_refused("hidden_size", 15.0, {"got 15.0"});
  expect_refused("hidden_size", "15", {"got \"15\""});
  expect_refused("hidden_size", true, {"got true"});
  expect_refused("hidden_size", nullptr, {"got null"});
  expect_refused("hidden_size", uint64_t{18446744073709551615u}, {"18446744073709551615"});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("conv_kernel", 1, {"from 2 to 4"});
  expect_refused("conv_kernel", 5, {"from 2 to 4"});
  expect_refused("time_step_rank", "automatic", {"\"auto\""});
  expect_refused("time_step_rank", 0, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("layer_norm_epsilon", 0, {"above 0"});
  expect_refused("layer_norm_epsilon", -1e-5, {"above 0"});
  expect_refused("layer_norm_epsilon", "1e-5", {"above 0"});
  expect_refused("expand", 0.01, {"int(expand * hidden_size)"});
  expect_refused("expand", 1e300, {"int(expand * hidden_size)"});
  expect_refused("intermediate_size", 46, {"45", "got 46"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "mamba2", {"\"mamba\""});
}

TEST(MambaFields, FlagsAreBooleans) {
  for (const char* flag : {"use_bias", "use_conv_bias", "tie_word_embeddings", "residual_in_fp32", "use_cache",
                           "rescale_prenorm_residual", "use_mambapy", "use_associative_scan"}) {
    expect_refused(flag, 1, {"true or false"});
    expect_refused(flag, "true", {"true or false"});
  }
}

TEST(MambaFields, UnknownFieldNamesTheNearest) {
  expect_refused("hiden_size", 15, {"not a field of mamba", "hidden_size"});
  expect_refused("num_heads", 3, {"not a field of mamba"});
}

// At most 2^40 elements: the embedding and the head are 2 * 2^30 * hidden_size.
TEST(MambaFields, SizesBeyondMemoryAreRefused) {
  Json fields = saved();
  fields.erase("intermediate_size");
  fields["vocab_size"] = 1 << 30;
  fields["hidden_size"] = 500;
  EXPECT_NO_THROW(model_spec("mamba").check(config_of(fields)));
  fields["hidden_size"] = 600;
  EXPECT_THROW(model_spec("mamba").check(config_of(fields)), InputError);
  for (const char* name : {"hidden_size", "state_size", "time_step_rank"}) fields[name] = 1 << 30;
  fields["expand"] = 1;
  EXPECT_THROW(model_spec("mamba").check(config_of(fields)), InputError);
}

// state_dict of MambaForCausalLM (transformers 5.24.0) with the config above.
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

TEST(MambaWeights, TableIsTheOriginals) { testing::expect_weights(config_of(saved()), kOriginal); }

TEST(MambaWeights, FlagsTakeTensorsAway) {
  Json fields = saved();
  for (const char* name : {"use_bias", "use_conv_bias"}) fields[name] = false;
  fields["tie_word_embeddings"] = true;
  const std::vector<Row> expected = testing::rows_without(kOriginal, [](const std::string& name) {
    return name.ends_with("in_proj.bias") || name.ends_with("out_proj.bias") || name.ends_with("conv1d.bias") ||
           name == "lm_head.weight";
  });
  ASSERT_EQ(expected.size(), kOriginal.size() - 4);
  testing::expect_weights(config_of(fields), expected);
}

TEST(MambaProbes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of(saved()), {
                                                 {"embed", {15}},
                                                 {"layers.0.norm", {15}},
                                                 {"layers.0.mixer.in_proj", {90}},
                                                 {"layers.0.mixer.conv1d", {45}},
                                                 {"layers.0.mixer.x_proj", {18}},
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
  for (const ProbeSpec& probe : model_spec("mamba").probes(config_of(saved()))) EXPECT_EQ(probe.state_heads, 1);
}

}  // namespace
}  // namespace assay

#include "cases/spec/models/mamba2.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "cases/spec/testing/family.hpp"

namespace assay {
namespace {

using testing::Json;
using testing::Row;
using testing::with;

ModelConfig config_of(Json fields) { return testing::config_of("mamba2", std::move(fields)); }

// config.json as transformers 5.24.0 saves it.
Json saved() {
  return Json::parse(R"({
    "bos_token_id": 0, "chunk_size": 5, "conv_kernel": 3, "eos_token_id": 2, "expand": 3, "head_dim": 5,
    "hidden_act": "silu", "hidden_size": 15, "initializer_range": 0.1, "layer_norm_epsilon": 1e-05,
    "model_type": "mamba2", "n_groups": 3, "num_heads": 9, "num_hidden_layers": 1, "pad_token_id": 1,
    "rescale_prenorm_residual": false, "residual_in_fp32": true, "state_size": 7, "tie_word_embeddings": false,
    "time_step_floor": 0.0001, "time_step_limit": [0.0, {"__float__": "Infinity"}], "time_step_max": 0.1,
    "time_step_min": 0.001, "time_step_rank": 1, "transformers_version": "5.24.0", "use_bias": true, "use_cache": true,
    "use_conv_bias": true, "vocab_size": 53})");
}

void expect_refused(const std::string& field, const Json& value, std::initializer_list<std::string> parts) {
  testing::expect_refused("mamba2", saved(), field, value, parts);
}

Mamba2Fields fields_with(const std::string& field, Json value) {
  return mamba2_fields(config_of(with(saved(), field, std::move(value))));
}

TEST(Mamba2Fields, DefaultsAreTheOriginals) {
  const Mamba2Fields f = mamba2_fields(config_of(Json::object()));
  EXPECT_EQ(f.vocab_size, 32768);
  EXPECT_EQ(f.hidden_size, 4096);
  EXPECT_EQ(f.intermediate_size, 8192);
  EXPECT_EQ(f.state_size, 128);
  EXPECT_EQ(f.conv_kernel, 4);
  EXPECT_EQ(f.num_heads, 128);
  EXPECT_EQ(f.head_dim, 64);
  EXPECT_EQ(f.n_groups, 8);
  EXPECT_EQ(f.chunk_size, 256);
  EXPECT_EQ(f.num_hidden_layers, 64);
  EXPECT_EQ(f.layer_norm_epsilon, 1e-5);
  EXPECT_EQ(f.dt_min, 0);
  EXPECT_EQ(f.dt_max, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(f.use_bias);
  EXPECT_TRUE(f.use_conv_bias);
  EXPECT_FALSE(f.tie_word_embeddings);
  EXPECT_EQ(f.conv_dim(), 8192 + 2 * 8 * 128);
}

TEST(Mamba2Fields, SavedConfigIsAccepted) {
  EXPECT_NO_THROW(model_spec("mamba2").check(config_of(saved())));
  EXPECT_NO_THROW(model_spec("mamba2").check(config_of(Json::object())));
}

TEST(Mamba2Fields, TimeStepLimit) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(mamba2_fields(config_of(saved())).dt_max, infinity);
  EXPECT_EQ(fields_with("time_step_limit", {0, "Infinity"}).dt_max, infinity);
  EXPECT_EQ(fields_with("time_step_limit", {0.05, 0.6}).dt_min, 0.05);
  EXPECT_EQ(fields_with("time_step_limit", {0.05, 0.6}).dt_max, 0.6);
  EXPECT_EQ(fields_with("time_step_limit", {0.5, 0.5}).dt_max, 0.5);
  EXPECT_EQ(fields_with("time_step_limit", nullptr).dt_max, infinity);
  const Json infinite = {{"__float__", "Infinity"}};
  for (const Json& wrong : std::vector<Json>{
           Json::array({0.6, 0.05}), Json::array({0.6}), Json::array({0, 1, 2}), Json::array({-1, 1}), Json(0.5),
           Json::array({infinite, infinite}), Json::array({0, nullptr}), Json::array({0, "NaN"}), Json::array({0, "1"}),
           Json::array({0, {{"__float__", "NaN"}}}), Json::array({0, {{"__float__", "Infinity"}, {"x", 1}}})})
    expect_refused("time_step_limit", wrong, {"[lo, hi]"});
}

TEST(Mamba2Fields, WrongValuesAreRefused) {
  expect_refused("hidden_size", 0, {"from 1", "got 0"});
  expect_refused("hidden_size", "15", {"got \"15\""});
  expect_refused("vocab_size", 1, {"from 2"});
  expect_refused("conv_kernel", 5, {"from 2 to 4"});
  expect_refused("num_heads", 8, {"45"});
  expect_refused("n_groups", 2, {"divisor of num_heads = 9"});
  expect_refused("n_groups", 18, {"divisor of num_heads = 9"});
  expect_refused("n_groups", 0, {"from 1"});
  expect_refused("chunk_size", 0, {"from 1"});
  expect_refused("num_hidden_layers", 2'000'000'000, {"2000000000"});
  expect_refused("layer_norm_epsilon", 0, {"above 0"});
  expect_refused("intermediate_size", 46, {"45", "got 46"});
  expect_refused("hidden_act", "gelu", {"\"silu\""});
  expect_refused("model_type", "mamba", {"\"mamba2\""});
  for (const char* flag : {"use_bias", "use_conv_bias", "tie_word_embeddings", "residual_in_fp32", "use_cache",
                           "rescale_prenorm_residual", "rms_norm", "norm_before_gate"})
    expect_refused(flag, 1, {"true or false"});
  expect_refused("n_group", 3, {"not a field of mamba2", "n_groups"});
  expect_refused("use_mambapy", true, {"not a field of mamba2"});
}

// At most 2^40 elements: the embedding and the head are 2 * 2^30 * hidden_size.
TEST(Mamba2Fields, SizesBeyondMemoryAreRefused) {
  Json fields = saved();
  fields["vocab_size"] = 1 << 30;
  fields["hidden_size"] = 500;
  fields["num_heads"] = 300;
  EXPECT_NO_THROW(model_spec("mamba2").check(config_of(fields)));
  fields["hidden_size"] = 600;
  fields["num_heads"] = 360;
  EXPECT_THROW(model_spec("mamba2").check(config_of(fields)), InputError);
  for (const char* name : {"hidden_size", "num_heads", "n_groups", "state_size"}) fields[name] = 1 << 30;
  fields["expand"] = fields["head_dim"] = 1;
  EXPECT_THROW(model_spec("mamba2").check(config_of(fields)), InputError);
}

// state_dict of Mamba2ForCausalLM (transformers 5.24.0) with the config above.
const std::vector<Row> kOriginal = {
    {"backbone.embeddings.weight", {53, 15}},
    {"backbone.layers.0.norm.weight", {15}},
    {"backbone.layers.0.mixer.dt_bias", {9}},
    {"backbone.layers.0.mixer.A_log", {9}},
    {"backbone.layers.0.mixer.D", {9}},
    {"backbone.layers.0.mixer.conv1d.weight", {87, 1, 3}},
    {"backbone.layers.0.mixer.conv1d.bias", {87}},
    {"backbone.layers.0.mixer.in_proj.weight", {141, 15}},
    {"backbone.layers.0.mixer.in_proj.bias", {141}},
    {"backbone.layers.0.mixer.norm.weight", {45}},
    {"backbone.layers.0.mixer.out_proj.weight", {15, 45}},
    {"backbone.layers.0.mixer.out_proj.bias", {15}},
    {"backbone.norm_f.weight", {15}},
    {"lm_head.weight", {53, 15}},
};

TEST(Mamba2Weights, TableIsTheOriginals) { testing::expect_weights(config_of(saved()), kOriginal); }

TEST(Mamba2Weights, FlagsTakeTensorsAway) {
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

// Groups of x at unlike scales, or a gated norm over all of I would equal one over each group.
TEST(Mamba2Weights, NeighbouringGroupsHaveUnlikeScales) {
  const auto table = model_spec("mamba2").weights(config_of(saved()));
  for (const WeightSpec& spec : table) {
    if (!spec.name.ends_with("in_proj.weight")) continue;
    std::vector<double> scale(141, 1);
    for (const WeightSpec::RowScale& rows : spec.row_scales)
      for (int64_t row = rows.begin; row < rows.end; ++row) scale.at(static_cast<size_t>(row)) *= rows.scale;
    for (size_t row = 45; row < 90; ++row) {  // rows of x: 3 groups of 15
      EXPECT_EQ(scale[row], scale[45 + (row - 45) / 15 * 15]) << row;
      if (row >= 60) {
        EXPECT_NE(scale[row], scale[row - 15]) << row;
      }
    }
    return;
  }
  FAIL() << "no in_proj.weight";
}

TEST(Mamba2Probes, InOrderOfComputationThenStates) {
  testing::expect_probes(config_of(saved()), {
                                                 {"embed", {15}},
                                                 {"layers.0.norm", {15}},
                                                 {"layers.0.mixer.in_proj", {141}},
                                                 {"layers.0.mixer.conv1d", {87}},
                                                 {"layers.0.mixer.dt", {9}},
                                                 {"layers.0.mixer.ssd", {9, 5}},
                                                 {"layers.0.mixer.norm", {45}},
                                                 {"layers.0.mixer.out_proj", {15}},
                                                 {"layers.0.out", {15}},
                                                 {"norm_f", {15}},
                                                 {"logits", {53}},
                                                 {"layers.0.mixer.conv_state", {87, 3}},
                                                 {"layers.0.mixer.ssm_state", {9, 5, 7}},
                                             });
  for (const ProbeSpec& probe : model_spec("mamba2").probes(config_of(saved())))
    EXPECT_EQ(probe.state_heads, probe.name.ends_with("ssm_state") ? 9 : 1) << probe.name;
}

}  // namespace
}  // namespace assay

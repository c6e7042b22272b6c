#include "cases/spec/blocks/mamba2_mixer.hpp"

#include <limits>

#include "cases/spec/blocks/testing.hpp"
#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

Mamba2MixerShape read(const Json& fields, int64_t hidden_size = 24) {
  ModelConfig config;
  config.file = "odd.config.json";
  config.fields = fields;
  return read_mamba2_mixer(FieldReader(config), hidden_size, 0.003);
}

void expect_refused(const char* name, const Json& value) {
  Json fields = {{"mamba_n_heads", 6}, {"mamba_d_head", 8}, {"mamba_n_groups", 2}};
  fields[name] = value;
  try {
    read(fields);
    ADD_FAILURE() << name << " " << value << " was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find(std::string("/config/") + name), std::string::npos) << error.what();
  }
}

TEST(Mamba2MixerFields, Defaults) {
  const Mamba2MixerShape shape = read(Json::object(), 4096);
  EXPECT_EQ(shape.intermediate_size, 8192);
  EXPECT_EQ(shape.heads, 128);
  EXPECT_EQ(shape.head_dim, 64);
  EXPECT_EQ(shape.groups, 1);
  EXPECT_EQ(shape.state_size, 256);
  EXPECT_EQ(shape.conv_kernel, 4);
  EXPECT_EQ(shape.chunk_size, 256);
  EXPECT_EQ(shape.epsilon, 0.003);
  EXPECT_EQ(shape.dt_min, 0);
  EXPECT_EQ(shape.dt_max, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(shape.has_conv_bias);
  EXPECT_FALSE(shape.has_in_bias || shape.has_out_bias);
  EXPECT_EQ(shape.gate, Mamba2MixerShape::Gate::kGateThenNorm);
}

TEST(Mamba2MixerFields, AutoIsTheQuotient) {
  for (const Json& value : {Json("auto"), Json(nullptr), Json(8)})
    EXPECT_EQ(read({{"mamba_n_heads", 6}, {"mamba_d_head", value}}).head_dim, 8) << value;
}

TEST(Mamba2MixerFields, OneFlagGivesBothProjectionsABias) {
  const Mamba2MixerShape shape = read({{"mamba_n_heads", 6}, {"mamba_proj_bias", true}, {"mamba_conv_bias", false}});
  EXPECT_TRUE(shape.has_in_bias && shape.has_out_bias);
  EXPECT_FALSE(shape.has_conv_bias);
}

TEST(Mamba2MixerFields, LiesAreRefusedByName) {
  expect_refused("mamba_n_heads", 7);
  expect_refused("mamba_n_heads", 0);
  expect_refused("mamba_d_head", 9);
  expect_refused("mamba_d_head", "8");
  expect_refused("mamba_n_groups", 4);
  expect_refused("mamba_n_groups", 12);
  expect_refused("mamba_d_state", 0);
  expect_refused("mamba_d_conv", 5);
  expect_refused("mamba_d_conv", 1);
  expect_refused("mamba_expand", 1.5);
  expect_refused("mamba_chunk_size", 0);
  expect_refused("mamba_conv_bias", 1);
  expect_refused("mamba_proj_bias", "no");
  expect_refused("time_step_limit", {0.5, 0.1});
}

Mamba2MixerShape grouped() {
  Mamba2MixerShape shape;
  shape.hidden_size = 5;
  shape.intermediate_size = 12;
  shape.state_size = 2;
  shape.conv_kernel = 3;
  shape.heads = 4;
  shape.head_dim = 3;
  shape.groups = 2;
  return shape;
}

TEST(Mamba2MixerTables, WithEveryBias) {
  Mamba2MixerShape shape = grouped();
  shape.has_in_bias = shape.has_out_bias = true;
  expect_names(weights_of(shape), {{"l.dt_bias", {4}},
                                   {"l.A_log", {4}},
                                   {"l.D", {4}},
                                   {"l.in_proj.weight", {36, 5}},  // 12 z, 12 x, 4 B, 4 C, 4 dt
                                   {"l.in_proj.bias", {36}},
                                   {"l.conv1d.weight", {20, 1, 3}},
                                   {"l.conv1d.bias", {20}},
                                   {"l.norm.weight", {12}},
                                   {"l.out_proj.weight", {5, 12}},
                                   {"l.out_proj.bias", {5}}});
}

TEST(Mamba2MixerTables, ProbesThenStates) {
  const auto probes = probes_of(grouped());
  expect_names(probes, {{"p.in_proj", {36}},
                        {"p.conv1d", {20}},
                        {"p.dt", {4}},
                        {"p.ssd", {4, 3}},
                        {"p.norm", {12}},
                        {"p.out_proj", {5}},
                        {"p.conv_state", {20, 3}},
                        {"p.ssm_state", {4, 3, 2}}});
  EXPECT_EQ(probes[7].state_heads, 4);
}

TEST(Mamba2MixerTables, WithoutTheNorm) {
  Mamba2MixerShape shape = grouped();
  shape.gate = Mamba2MixerShape::Gate::kGateOnly;
  shape.has_conv_bias = false;
  for (const WeightSpec& spec : weights_of(shape))
    EXPECT_TRUE(spec.name != "l.norm.weight" && spec.name != "l.conv1d.bias");
  EXPECT_EQ(probes_of(shape)[4].name, "p.gate");
}

}  // namespace
}  // namespace assay

#include "cases/spec/blocks/rotary.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;
using Scaling = RotaryShape::Scaling;

RotaryShape read(const char* fields, int64_t head_dim = 8, std::optional<double> fixed_partial = std::nullopt) {
  ModelConfig config;
  config.file = "odd.config.json";
  config.fields = Json::parse(fields);
  return read_rotary(FieldReader(config), head_dim, 10000, 1, fixed_partial);
}

void expect_refused(const char* fields, const std::string& name, const std::string& part, int64_t head_dim = 8) {
  try {
    read(fields, head_dim);
    ADD_FAILURE() << fields << " was read";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("/config/" + name), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << part << " not in: " << text;
  }
}

TEST(RotaryFields, DefaultsTurnTheWholeHead) {
  const RotaryShape shape = read("{}");
  EXPECT_EQ(shape.width, 8);
  EXPECT_EQ(shape.theta, 10000);
  EXPECT_EQ(shape.scaling, Scaling::kNone);
  EXPECT_EQ(shape.attention_factor, 1);
}

TEST(RotaryFields, TheDictionaryWinsOverTheTopLevel) {
  EXPECT_EQ(read(R"({"rope_theta": 50})").theta, 50);
  EXPECT_EQ(read(R"({"rope_theta": 50, "rope_parameters": {"rope_type": "default"}})").theta, 50);
  EXPECT_EQ(read(R"({"rope_theta": 50, "rope_parameters": {"rope_theta": 70}})").theta, 70);
  EXPECT_EQ(read(R"({"partial_rotary_factor": 0.5})").width, 4);
  EXPECT_EQ(read(R"({"partial_rotary_factor": 0.5, "rope_parameters": {"partial_rotary_factor": 0.25}})").width, 2);
}

TEST(RotaryFields, TheOlderDictionaryWinsOverTheNewer) {
  const RotaryShape shape =
      read(R"({"rope_parameters": {"rope_theta": 70}, "rope_scaling": {"type": "linear", "factor": 2}})");
  EXPECT_EQ(shape.scaling, Scaling::kLinear);
  EXPECT_EQ(shape.theta, 10000);
  EXPECT_EQ(read(R"({"rope_parameters": {"rope_theta": 70}, "rope_scaling": null})").theta, 70);
  EXPECT_EQ(read(R"({"rope_parameters": {"rope_theta": 70}, "rope_scaling": {}})").theta, 70);
}

// What transformers 5.24.0 does with bamba's configs.
TEST(RotaryFields, AFixedPartReplacesTheTopLevelAndNotTheDictionary) {
  EXPECT_EQ(read("{}", 8, 0.5).width, 4);
  EXPECT_EQ(read(R"({"partial_rotary_factor": 1.0})", 8, 0.5).width, 4);
  EXPECT_EQ(read(R"({"rope_parameters": {"partial_rotary_factor": 1.0}})", 8, 0.5).width, 8);
}

TEST(RotaryFields, Yarn) {
  const RotaryShape shape =
      read(R"({"max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn", "factor": 4}})");
  EXPECT_EQ(shape.scaling, Scaling::kYarn);
  EXPECT_EQ(shape.factor, 4);
  EXPECT_EQ(shape.original_length, 64);
  EXPECT_EQ(shape.beta_fast, 32);
  EXPECT_EQ(shape.beta_slow, 1);
  EXPECT_TRUE(shape.truncates);
  EXPECT_NEAR(shape.attention_factor, 1.138629436111989, 1e-15);  // 0.1 ln 4 + 1

  const RotaryShape given = read(R"({"rope_parameters": {"rope_type": "yarn", "factor": 4, "attention_factor": 0.9,
      "original_max_position_embeddings": 16, "beta_fast": 2, "beta_slow": 0.5, "truncate": false}})");
  EXPECT_EQ(given.original_length, 16);
  EXPECT_EQ(given.beta_fast, 2);
  EXPECT_EQ(given.beta_slow, 0.5);
  EXPECT_FALSE(given.truncates);
  EXPECT_EQ(given.attention_factor, 0.9);

  const RotaryShape scaled = read(R"({"rope_parameters": {"rope_type": "yarn", "factor": 4, "mscale": 0.8,
      "mscale_all_dim": 0.5, "original_max_position_embeddings": 16}})");
  EXPECT_NEAR(scaled.attention_factor, 1.0388929752217428, 1e-15);  // (0.08 ln 4 + 1) / (0.05 ln 4 + 1)
}

TEST(RotaryFields, Llama3) {
  const RotaryShape shape = read(R"({"rope_parameters": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1.5,
      "high_freq_factor": 6, "original_max_position_embeddings": 32}})");
  EXPECT_EQ(shape.scaling, Scaling::kLlama3);
  EXPECT_EQ(shape.factor, 8);
  EXPECT_EQ(shape.original_length, 32);
  EXPECT_EQ(shape.low_frequency_factor, 1.5);
  EXPECT_EQ(shape.high_frequency_factor, 6);
}

TEST(RotaryFields, LiesAreRefusedByName) {
  expect_refused(R"({"rope_theta": -1})", "rope_theta", "above 0");
  expect_refused(R"({"rope_parameters": {"rope_theta": 1}})", "rope_parameters", "rope_theta above 1");
  expect_refused(R"({"rope_parameters": {"rope_theta": "10000"}})", "rope_parameters", "rope_theta");
  expect_refused(R"({"rope_parameters": [1]})", "rope_parameters", "an object");
  expect_refused(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})", "rope_scaling", "linear, yarn or llama3");
  expect_refused(R"({"rope_scaling": {"type": 3}})", "rope_scaling", "a word");
  expect_refused(R"({"rope_scaling": {"type": "linear"}})", "rope_scaling", "a factor beside rope_type linear");
  expect_refused(R"({"rope_scaling": {"type": "linear", "factor": 0}})", "rope_scaling", "above 0");
  expect_refused(R"({"rope_scaling": {"type": "linear", "facter": 2}})", "rope_scaling", "no setting named facter");
  expect_refused(R"({"rope_scaling": {"type": "yarn", "factor": 2}})", "rope_scaling",
                 "original_max_position_embeddings");
  expect_refused(R"({"max_position_embeddings": 8, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": 1}})",
                 "rope_scaling", "truncate");
  expect_refused(R"({"max_position_embeddings": 8, "rope_scaling": {"type": "yarn", "factor": 2, "beta_slow": 33}})",
                 "rope_scaling", "beta_slow");
  expect_refused(R"({"max_position_embeddings": 8, "rope_scaling": {"type": "llama3", "factor": 2}})", "rope_scaling",
                 "low_freq_factor");
  expect_refused(R"({"max_position_embeddings": 8, "rope_scaling": {"type": "llama3", "factor": 2,
                 "low_freq_factor": 4, "high_freq_factor": 4}})",
                 "rope_scaling", "below its high_freq_factor");
  expect_refused(R"({"partial_rotary_factor": 1.5})", "rope_parameters", "at most 1");
  expect_refused(R"({"partial_rotary_factor": 0.4})", "rope_parameters", "int(8 * 0.4) = 3");
  expect_refused("{}", "rope_parameters", "int(7 * 1) = 7", 7);
}

}  // namespace
}  // namespace assay

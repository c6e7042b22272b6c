#include "cases/spec/weights.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers published with Random123.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t all = 0xffffffff;
  EXPECT_EQ(philox4x32_10({all, all, all, all}, {all, all}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// The first three are published with the hash.
TEST(Fnv1a64, KnownAnswers) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(fnv1a64("backbone.norm_f.weight"), 0x75ff7dab91677ca1u);
}

void expect_values(const HostTensor& tensor, const std::map<size_t, float>& expected) {
  const auto values = tensor.values<float>();
  for (const auto& [index, value] : expected) EXPECT_EQ(values[index], value) << "element " << index;
}

// Values and digests from an implementation in Python's exact integers and float64, rounded once to float32. They hold
// in every build: another compiler or optimisation level that moved one bit would make every golden stale.
TEST(Draw, KnownValues) {
  expect_values(draw({"backbone.layers.0.norm.weight", {31}, Role::kNorm, 1, {}}, 7), {{0, 1.2159512f},
                                                                                       {1, 0.777263045f},
                                                                                       {2, 1.23290026f},
                                                                                       {3, 1.07412016f},
                                                                                       {4, 1.12631869f},
                                                                                       {5, 1.14859772f},
                                                                                       {6, 0.813705862f},
                                                                                       {30, 0.750985205f}});
  expect_values(draw({"backbone.layers.0.mixer.A_log", {6}, Role::kALog, 1, {}}, 123456789012345), {{0, -3.71440268f},
                                                                                                    {1, -0.0323677063f},
                                                                                                    {2, -3.17660737f},
                                                                                                    {3, 0.304975986f},
                                                                                                    {4, -2.92894363f},
                                                                                                    {5, 0.6223104f}});
  expect_values(draw({"backbone.layers.1.mixer.conv1d.bias", {5}, Role::kConvBias, 1, {}}, 9007199254740991),
                {{0, 0.527362108f}, {1, -0.368050843f}, {2, 0.500463963f}, {3, -0.280328065f}, {4, 0.31001997f}});
}

// Rows 1 and 2 by 0.5, row 2 by 3 as well.
TEST(Draw, RowScalesMultiply) {
  const WeightSpec spec{"backbone.layers.0.mixer.in_proj.weight", {4, 3}, Role::kInProj, 3, {{1, 3, 0.5}, {2, 3, 3.0}}};
  expect_values(draw(spec, 1), {{0, 0.572800517f},
                                {2, -0.053552866f},
                                {3, 0.330158651f},
                                {5, -0.0296989679f},
                                {6, 0.312362373f},
                                {7, -1.13388252f},
                                {8, 1.34785545f},
                                {9, 0.0534288883f},
                                {11, -0.183549881f}});
}

TEST(Draw, KnownDigests) {
  EXPECT_EQ(sha256(draw({"backbone.layers.0.mixer.dt_bias", {10001}, Role::kDtBias, 1, {}}, 1).bytes()),
            "df956cdf3368a4f844fcdb9f7db4de19a585515482082464358e0483de6b8f79");
  EXPECT_EQ(sha256(draw({"backbone.layers.0.mixer.out_proj.weight", {48, 96}, Role::kOutProj, 96, {}}, 1).bytes()),
            "147ad2fba3c22ecab687a7381a8a47bcb1835f02111fddb26be665d5557feedb");
}

TEST(Draw, NameAndSeedMatter) {
  const WeightSpec spec{"backbone.norm_f.weight", {8}, Role::kNorm, 1, {}};
  WeightSpec other = spec;
  other.name = "backbone.layers.0.norm.weight";
  EXPECT_NE(sha256(draw(spec, 1).bytes()), sha256(draw(spec, 2).bytes()));
  EXPECT_NE(sha256(draw(spec, 1).bytes()), sha256(draw(other, 1).bytes()));
}

// What the ranges promise: decay of both kinds, softplus of dt's bias in its useful range, no bias near zero.
TEST(Draw, RangesKeepTheirPromises) {
  const auto a_log_tensor = draw({"A_log", {64, 16}, Role::kALog, 1, {}}, 3);
  int64_t slow = 0, fast = 0;
  for (const float value : a_log_tensor.values<float>()) {
    slow += value >= -5 && value <= -2.5f;
    fast += value >= -0.5f && value <= 1.5f;
  }
  EXPECT_EQ(slow, 512);
  EXPECT_EQ(fast, 512);
  const auto dt_bias = draw({"dt_bias", {1000}, Role::kDtBias, 1, {}}, 3);
  for (const float value : dt_bias.values<float>()) {
    EXPECT_GE(std::log1p(std::exp(value)), 0.02);
    EXPECT_LE(std::log1p(std::exp(value)), 1.01);
  }
  const auto conv_bias = draw({"bias", {1000}, Role::kConvBias, 1, {}}, 3);
  for (const float value : conv_bias.values<float>()) {
    EXPECT_GE(std::abs(value), 0.2f);
    EXPECT_LE(std::abs(value), 0.6f);
  }
}

ModelConfig tiny(const std::string& model) {
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases" / "models" / model / "tiny.config.json");
}

TEST(OpenWeights, SyntheticSourceDrawsTheTable) {
  for (const char* model : {"mamba", "mamba2"}) {
    const ModelConfig config = tiny(model);
    const auto table = model_spec(model).weights(config);
    const auto source = open_weights(config);
    EXPECT_NO_THROW(check_names(table, *source));
    ASSERT_EQ(source->names().size(), table.size());
    for (const WeightSpec& spec : table) {
      EXPECT_TRUE(source->has(spec.name));
      EXPECT_EQ(source->read(spec.name).shape(), spec.shape) << spec.name;
    }
    EXPECT_FALSE(source->has("backbone.nothing"));
    EXPECT_THROW(source->read("backbone.nothing"), InputError);
  }
}

}  // namespace
}  // namespace assay

#include "runners/bench/model_cost.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "cases/spec/model_spec.hpp"

namespace assay::bench {
namespace {

ModelConfig config_of(const std::string& id) {
  const size_t slash = id.find('/');
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases/models" / id.substr(0, slash) /
                     (id.substr(slash + 1) + ".config.json"));
}

ModelConfig mamba_of(int64_t layers, bool is_tied) {
  return parse_config({{"schema", "assay.config/1"},
                       {"model", "mamba"},
                       {"why", "For a test of counts."},
                       {"config",
                        {{"model_type", "mamba"},
                         {"vocab_size", 100},
                         {"hidden_size", 8},
                         {"intermediate_size", 16},
                         {"state_size", 4},
                         {"num_hidden_layers", layers},
                         {"conv_kernel", 3},
                         {"time_step_rank", 2},
                         {"use_bias", false},
                         {"use_conv_bias", true},
                         {"tie_word_embeddings", is_tied}}},
                       {"weights", {{"kind", "synthetic"}, {"seed", 1}}},
                       {"profile", nlohmann::json::object()},
                       {"inputs", {{"a", {{"seed", 2}, {"length", 3}, {"record", "probes"}}}}},
                       {"state_cuts", {3}}},
                      "a.config.json");
}

// Of a layer of mamba with H 8, I 16, N 4, K 3, R 2.
constexpr double kMatrices = 2 * 16 * 8 + (2 + 2 * 4) * 16 + 16 * 2 + 8 * 16;   // in_proj, x_proj, dt_proj, out_proj
constexpr double kMambaLayer = kMatrices + 16 * 3 + 16 + 16 + 16 * 4 + 16 + 8;  // conv, its bias, dt bias, A, D, norm

TEST(ModelCost, EveryWeightOnceAndTheEmbeddingByRows) {
  const ModelCost one = model_cost(mamba_of(1, false), 1, 1, 5), two = model_cost(mamba_of(2, false), 1, 1, 5);
  EXPECT_EQ(two.weight_bytes - one.weight_bytes, 4 * kMambaLayer);
  EXPECT_EQ(one.weight_bytes, 4 * (kMambaLayer + 8 /* norm_f */ + 100 * 8 /* head */ + 8 /* one row */));
  EXPECT_EQ(model_cost(mamba_of(1, true), 1, 1, 5).weight_bytes, one.weight_bytes) << "a tied head is read as well";
}

TEST(ModelCost, ProductsOfEachTokenWithTheMatrices) {
  const double of_a_token = 2 * (kMatrices + 100 * 8);
  EXPECT_EQ(model_cost(mamba_of(1, false), 3, 7, 0).flops, 21 * of_a_token);
}

TEST(ModelCost, RecurrentStatesAreReadAndWrittenBehindAPastOnly) {
  const double state = 4 * (16 * 3 + 16 * 4);
  EXPECT_EQ(model_cost(mamba_of(1, false), 2, 1, 5).state_bytes, 2 * 2 * state);
  EXPECT_EQ(model_cost(mamba_of(1, false), 2, 9, 0).state_bytes, 2 * state);
}

TEST(ModelCost, OfExpertsThoseThatTheTokensReach) {
  const ModelConfig config = config_of("qwen3_next/real");  // 16 experts of 3 x 512 x 2048, 10 a token, four layers
  const double expert = 4.0 * 3 * 512 * 2048;
  const double one = model_cost(config, 1, 1, 5).weight_bytes, many = model_cost(config, 64, 1, 5).weight_bytes;
  EXPECT_EQ(many - one, 4 * 6 * expert + 4.0 * 63 * 2048 /* more rows of the embedding */);
}

TEST(ModelCost, KeysAndValuesGrowWithThePast) {
  const ModelConfig config = config_of("qwen3_next/real");  // two layers with attention, 2 kv heads of 256
  const double column = 4.0 * 2 * 2 * 2 * 256;
  EXPECT_EQ(model_cost(config, 1, 1, 100).state_bytes - model_cost(config, 1, 1, 10).state_bytes, 90 * column);
}

}  // namespace
}  // namespace assay::bench

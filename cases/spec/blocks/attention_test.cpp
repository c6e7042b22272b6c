#include "cases/spec/blocks/attention.hpp"

#include "cases/spec/blocks/testing.hpp"
#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

AttentionShape read(const char* fields, int64_t hidden_size = 24) {
  ModelConfig config;
  config.file = "odd.config.json";
  config.fields = Json::parse(fields);
  return read_grouped_attention(FieldReader(config), hidden_size, 8, 2);
}

void expect_refused(const char* fields, const std::string& name) {
  try {
    read(fields);
    ADD_FAILURE() << fields << " was read";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("/config/" + name), std::string::npos) << error.what();
  }
}

TEST(AttentionFields, Defaults) {
  const AttentionShape shape = read("{}");
  EXPECT_EQ(shape.in_width, 24);
  EXPECT_EQ(shape.hidden_size, 24);
  EXPECT_EQ(shape.heads, 8);
  EXPECT_EQ(shape.kv_heads, 2);
  EXPECT_EQ(shape.head_dim, 3);
  EXPECT_FALSE(shape.has_bias);
  EXPECT_FALSE(shape.rotary.is_on());
}

TEST(AttentionFields, NullKeyHeadsAreAsManyAsQueryHeads) {
  EXPECT_EQ(read(R"({"num_attention_heads": 4, "num_key_value_heads": null})").kv_heads, 4);
  EXPECT_EQ(read(R"({"num_attention_heads": 4})").kv_heads, 2);
}

TEST(AttentionFields, HeadsMayBeWiderThanTheModel) {
  const AttentionShape shape = read(R"({"num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 16})");
  EXPECT_EQ(shape.width(), 80);
  EXPECT_EQ(shape.scale, 0.25);
}

TEST(AttentionFields, LiesAreRefusedByName) {
  expect_refused(R"({"num_attention_heads": 5})", "num_key_value_heads");
  expect_refused(R"({"num_attention_heads": 5, "num_key_value_heads": 1})", "num_attention_heads");
  expect_refused(R"({"num_attention_heads": 0})", "num_attention_heads");
  expect_refused(R"({"num_key_value_heads": 3})", "num_key_value_heads");
  expect_refused(R"({"head_dim": -4})", "head_dim");
  expect_refused(R"({"attention_bias": 1})", "attention_bias");
}

AttentionShape grouped() {
  AttentionShape shape;
  shape.in_width = 10;
  shape.hidden_size = 5;
  shape.heads = 6;
  shape.kv_heads = 2;
  shape.head_dim = 4;
  return shape;
}

TEST(AttentionTables, Plain) {
  const AttentionShape shape = grouped();
  expect_names(weights_of(shape), {{"l.q_proj.weight", {24, 10}},
                                   {"l.k_proj.weight", {8, 10}},
                                   {"l.v_proj.weight", {8, 10}},
                                   {"l.o_proj.weight", {5, 24}}});
  const auto probes = probes_of(shape);
  expect_names(probes, {{"p.q", {6, 4}},
                        {"p.k", {2, 4}},
                        {"p.v", {2, 4}},
                        {"p.attention", {6, 4}},
                        {"p.out_proj", {5}},
                        {"p.k_cache", {2, 4}},
                        {"p.v_cache", {2, 4}}});
  EXPECT_EQ(probes[0].op, "linear");
  EXPECT_EQ(probes[5].follows, "p.k");
  EXPECT_EQ(probes[6].follows, "p.v");
  EXPECT_TRUE(probes[5].is_state && probes[6].is_state && !probes[4].is_state);
}

TEST(AttentionTables, WithEverything) {
  AttentionShape shape = grouped();
  shape.has_bias = shape.has_output_gate = true;
  shape.head_norm = AttentionShape::HeadNorm::kZeroCentred;
  shape.out_name = "out_proj";
  shape.q_norm_name = "q_layernorm";
  shape.rotary.width = 2;
  const WeightTable table = weights_of(shape);
  expect_names(table, {{"l.q_proj.weight", {48, 10}},
                       {"l.q_proj.bias", {48}},
                       {"l.k_proj.weight", {8, 10}},
                       {"l.k_proj.bias", {8}},
                       {"l.v_proj.weight", {8, 10}},
                       {"l.v_proj.bias", {8}},
                       {"l.out_proj.weight", {5, 24}},
                       {"l.out_proj.bias", {5}},
                       {"l.q_layernorm.weight", {4}},
                       {"l.k_norm.weight", {4}}});
  EXPECT_EQ(table[8].role, Role::kZeroNorm);
  const auto probes = probes_of(shape);
  EXPECT_EQ(probes[1].op, "rotary");
  EXPECT_EQ(probes[4].name, "p.gated");
}

TEST(AttentionTables, AdaptersOfACallSite) {
  AttentionShape shape = grouped();
  WeightTable table;
  describe_adapters(table, "l.", 1, shape);
  EXPECT_TRUE(table.empty());
  shape.adapter_rank = 3;
  describe_adapters(table, "l.", 1, shape);
  expect_names(table, {{"l.linear_q_adapter_list.1.0.weight", {3, 10}},
                       {"l.linear_q_adapter_list.1.1.weight", {24, 3}},
                       {"l.linear_k_adapter_list.1.0.weight", {3, 10}},
                       {"l.linear_k_adapter_list.1.1.weight", {8, 3}},
                       {"l.linear_v_adapter_list.1.0.weight", {3, 10}},
                       {"l.linear_v_adapter_list.1.1.weight", {8, 3}}});
}

}  // namespace
}  // namespace assay

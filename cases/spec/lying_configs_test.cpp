// Configs that lie. First every field of every config of the repository, with values of the wrong kind, sign and size;
// then, family by family, values that are fine alone and contradict another field.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Pointer = Json::json_pointer;

std::vector<fs::path> config_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ASSAY_ROOT) / "cases" / "models"))
    if (entry.path().filename().string().ends_with(".config.json")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// What a config says when it is read and its tables are built; empty if nothing is wrong with it.
std::string refusal(const Json& document) {
  try {
    const ModelConfig config = parse_config(document, "folder/lying.config.json");
    const ModelSpec& spec = model_spec(config.model);
    for (const WeightSpec& weight : spec.weights(config)) EXPECT_GT(element_count(weight.shape), 0) << weight.name;
    for (const ProbeSpec& probe : spec.probes(config)) EXPECT_FALSE(probe.name.empty());
    spec.ops(config);
    return "";
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "not an InputError: " << error.what();
    return error.what();
  }
}

// Pointers to everything below "/config" that is not an object.
void list_fields(const Json& value, const Pointer& at, std::vector<Pointer>& found) {
  if (value.is_object() && !value.contains("__float__")) {
    for (const auto& [name, member] : value.items()) list_fields(member, at / name, found);
  } else {
    found.push_back(at);
  }
}

// Zero is a size that these may have (no experts at all, and then none are chosen).
const std::set<std::string> kMayBeZero = {"attn_layer_offset", "expert_layer_offset", "num_dense_layers",
                                          "num_experts",       "num_experts_per_tok", "num_local_experts"};
// Real numbers that a config may write as whole ones.
const std::set<std::string> kReal = {"beta_fast", "expand", "original_max_position_embeddings"};

std::vector<Json> lies_about(const std::string& field, const Json& value) {
  const Json infinite = {{"__float__", "Infinity"}};
  if (value.is_boolean()) return {3, "yes", Json::array()};
  if (value.is_number_integer() && !kReal.count(field)) {
    std::vector<Json> lies = {-1, int64_t{1} << 40, UINT64_MAX, 1.5, "many", true, Json::array({1}), infinite};
    if (!kMayBeZero.count(field)) lies.push_back(0);
    return lies;
  }
  if (value.is_number()) return {"much", true, Json::array({0.1}), infinite};
  if (value == "auto") return {"marvellous", 1.5, Json::array()};
  if (value.is_string()) return {"marvellous", 7, Json::array()};
  if (value.is_array()) return {7, "list", Json::object(), Json::array({"marvellous"}), Json::array({-1})};
  return {};
}

TEST(LyingConfigs, EveryFieldOfEveryConfig) {
  size_t lies = 0;
  for (const fs::path& file : config_files()) {
    const Json document = read_json(file);
    ASSERT_EQ(refusal(document), "") << file;
    std::vector<Pointer> fields;
    list_fields(document.at("config"), Pointer("/config"), fields);
    for (const Pointer& field : fields)
      for (const Json& lie : lies_about(field.back(), document.at(field))) {
        Json changed = document;
        changed.at(field) = lie;
        const std::string text = refusal(changed);
        // A size may be refused for what it makes of the whole model.
        const bool is_named = text.find("/config" + field.to_string().substr(7)) != std::string::npos ||
                              text.find(field.back()) != std::string::npos ||
                              text.find("its sizes together") != std::string::npos;
        EXPECT_TRUE(is_named) << file.parent_path().filename() << "/" << file.filename() << " " << field.to_string()
                              << " = " << lie << " gave: '" << text << "'";
        ++lies;
      }
  }
  EXPECT_GT(lies, 4000u);
}

TEST(LyingConfigs, UnknownFieldsAndModels) {
  for (const fs::path& file : config_files()) {
    const Json document = read_json(file);
    Json changed = document;
    changed["config"]["hidden_sizes"] = 24;
    EXPECT_NE(refusal(changed).find("/config/hidden_sizes"), std::string::npos) << refusal(changed);
    changed = document;
    changed["model"] = "marvellous";
    EXPECT_NE(refusal(changed).find("/model"), std::string::npos) << refusal(changed);
    changed = document;
    changed["config"]["model_type"] = "marvellous";
    EXPECT_NE(refusal(changed).find("model_type"), std::string::npos) << refusal(changed);
    changed = document;
    changed["config"] = Json::array();
    EXPECT_NE(refusal(changed).find("/config"), std::string::npos) << refusal(changed);
  }
}

// Null would keep a value derived from other fields, and there is none to derive these from.
TEST(LyingConfigs, SizesThatAreNeverNull) {
  for (const fs::path& file : config_files()) {
    const Json document = read_json(file);
    const Pointer fields(document.at("config").contains("text_config") ? "/config/text_config" : "/config");
    for (const char* name : {"vocab_size", "hidden_size", "num_hidden_layers"}) {
      Json changed = document;
      changed[fields / name] = nullptr;
      const std::string text = refusal(changed);
      // nemotron_h's list of layers says how many there are.
      const bool is_derived = document.at("model") == "nemotron_h" && name == std::string("num_hidden_layers");
      EXPECT_EQ(text.find((fields / name).to_string() + ": expected a whole number, got null") != std::string::npos,
                !is_derived)
          << file << " " << name << " gave: '" << text << "'";
    }
  }
}

struct Lie {
  const char* config;
  const char* field;  // below "/config"
  Json value;
  const char* named = nullptr;  // in the message, where it is not the field
};

// Alone each value would do; what it contradicts stands behind it.
const std::vector<Lie>& contradictions() {
  static const std::vector<Lie> kAll = {
      {"mamba/tiny", "/intermediate_size", 47},                         // expand * hidden_size
      {"falcon_mamba/tiny", "/intermediate_size", 47},                  // expand * hidden_size
      {"mamba2/tiny", "/num_heads", 5},                                 // expand * hidden_size = heads * head_dim
      {"mamba2/tiny", "/n_groups", 4},                                  // 6 heads
      {"mamba2/tiny", "/n_groups", 12},                                 // more than heads
      {"mamba2/tiny", "/time_step_limit", {0.5, 0.1}},                  // lo above hi
      {"bamba/tiny", "/num_attention_heads", 5},                        // hidden_size 32
      {"bamba/tiny", "/num_key_value_heads", 3},                        // 4 heads
      {"bamba/tiny", "/num_key_value_heads", 8},                        // more than heads
      {"bamba/tiny", "/attn_layer_indices", {4}},                       // 4 layers
      {"bamba/tiny", "/attn_layer_indices", {2, 2}},                    // twice
      {"bamba/tiny", "/mamba_n_heads", 5},                              // expand * hidden_size
      {"bamba/tiny", "/mamba_d_head", 7},                               // 4 * 7
      {"bamba/tiny", "/mamba_n_groups", 3},                             // 4 heads
      {"bamba/tiny", "/mamba_n_groups", 8},                             // more than heads
      {"bamba/tiny", "/head_dim", 6, "rope"},                           // half of it is odd
      {"falcon_h1/tiny", "/num_key_value_heads", 3},                    // 4 heads
      {"falcon_h1/tiny", "/head_dim", 7, "rope"},                       // rotated whole
      {"falcon_h1/tiny", "/mamba_n_heads", 5},                          // mamba_d_ssm 36
      {"falcon_h1/tiny", "/mamba_d_ssm", 35, "mamba_n_heads"},          // 6 heads
      {"falcon_h1/tiny", "/mamba_n_groups", 4},                         // 6 heads
      {"falcon_h1/tiny", "/mlp_multipliers", {1.0}},                    // two
      {"falcon_h1/tiny", "/ssm_multipliers", {1.0, 2.0, 3.0, 4.0}},     // five
      {"granitemoehybrid/tiny", "/num_experts_per_tok", 6},             // 5 experts
      {"granitemoehybrid/tiny", "/layer_types", {"linear_attention"}},  // 4 layers
      {"granitemoehybrid/tiny", "/num_hidden_layers", 5, "layer_types"},
      {"granitemoehybrid/tiny", "/num_attention_heads", 5},  // hidden_size 24
      {"granitemoehybrid/tiny", "/mamba_n_groups", 4},       // 6 heads
      {"granitemoehybrid/tiny", "/position_embedding_type", "ropes"},
      {"jamba/tiny", "/num_experts_per_tok", 5},                                              // 4 experts
      {"jamba/tiny", "/num_attention_heads", 5},                                              // hidden_size 24
      {"jamba/tiny", "/num_key_value_heads", 3},                                              // 4 heads
      {"jamba/tiny", "/attn_layer_offset", 3},                                                // period 3
      {"jamba/tiny", "/expert_layer_offset", 2},                                              // period 2
      {"lfm2/tiny", "/layer_types", {"conv", "full_attention", "conv"}},                      // 4 layers
      {"lfm2/tiny", "/layer_types", {"conv", "full_attention", "conv", "linear_attention"}},  // another family's
      {"lfm2/tiny", "/full_attn_idxs", {4}},                                                  // 4 layers
      {"lfm2/tiny", "/num_attention_heads", 5},                                               // hidden_size 24
      {"lfm2/tiny", "/head_dim", 7, "rope"},
      {"lfm2_moe/tiny", "/num_experts_per_tok", 7},  // 6 experts
      {"lfm2_moe/tiny", "/num_dense_layers", 5},     // 4 layers
      {"lfm2_moe/tiny", "/layer_types", {"conv"}},   // 4 layers
      {"lfm2_moe/tiny", "/num_key_value_heads", 3},  // 4 heads
      {"nemotron_h/tiny", "/hybrid_override_pattern", "MEX"},
      {"nemotron_h/tiny", "/hybrid_override_pattern", ""},
      {"nemotron_h/tiny", "/num_experts_per_tok", 7},  // 6 experts
      {"nemotron_h/tiny", "/n_group", 4},              // 6 experts
      {"nemotron_h/tiny", "/topk_group", 2},           // one group
      {"nemotron_h/tiny", "/n_groups", 4},             // 6 heads
      {"nemotron_h/tiny", "/num_key_value_heads", 3},  // 4 heads
      {"nemotron_h/awkward", "/layers_block_type", {"mamba", "moes"}},
      {"qwen3_next/tiny", "/num_experts_per_tok", 7},     // 6 experts
      {"qwen3_next/tiny", "/linear_num_value_heads", 3},  // 2 key heads
      {"qwen3_next/tiny", "/linear_num_value_heads", 1},  // fewer than key heads
      {"qwen3_next/tiny", "/layer_types", {"linear_attention"}},
      {"qwen3_next/tiny", "/mlp_only_layers", {4}},                                              // 4 layers
      {"qwen3_next/tiny", "/num_key_value_heads", 3},                                            // 4 heads
      {"qwen3_next/tiny", "/rope_parameters/partial_rotary_factor", 0.4375, "rope_parameters"},  // 7 lanes
      {"qwen3_5/tiny", "/text_config/layer_types", {"linear_attention"}},
      {"qwen3_5/tiny", "/text_config/layer_types", {"linear_attention", "conv", "full_attention", "linear_attention"}},
      {"qwen3_5/tiny", "/text_config/linear_num_value_heads", 3},                                    // 2 key heads
      {"qwen3_5/tiny", "/text_config/num_key_value_heads", 3},                                       // 4 heads
      {"qwen3_5/tiny", "/text_config/rope_parameters/mrope_section", {1, 1, 1}, "rope_parameters"},  // 2 pairs
      {"qwen3_5/tiny", "/tie_word_embeddings", true},                                                // text_config's
      {"qwen3_5_moe/tiny", "/text_config/num_experts_per_tok", 7},                                   // 6 experts
      {"qwen3_5_moe/tiny", "/text_config/head_dim", 20, "rope"},  // a quarter of it is odd
      {"zamba/tiny", "/num_attention_heads", 5},                  // 2 * hidden_size
      {"zamba/tiny", "/num_key_value_heads", 3},                  // 4 heads
      {"zamba/tiny", "/n_mamba_heads", 5},                        // expand * hidden_size
      {"zamba/tiny", "/attention_hidden_size", 47},
      {"zamba/tiny", "/layers_block_type", {"mamba", "hybrid"}},   // 5 layers
      {"zamba2/tiny", "/layers_block_type", {"mamba", "hybrid"}},  // 4 layers
      {"zamba2/tiny", "/layers_block_type", {"mamba", "attention", "mamba", "hybrid"}},
      {"zamba2/tiny", "/hybrid_layer_ids", {1, 2}},  // 1 and 3
      {"zamba2/tiny", "/n_mamba_heads", 5},          // expand * hidden_size
      {"zamba2/tiny", "/mamba_headdim", 7},          // 6 * 7
      {"zamba2/tiny", "/mamba_ngroups", 4},          // 6 heads
      {"zamba2/tiny", "/num_attention_heads", 5},    // 2 * hidden_size
      {"zamba2/tiny", "/num_key_value_heads", 3},    // 4 heads
      {"zamba2/tiny", "/attention_head_dim", 13},
  };
  return kAll;
}

TEST(LyingConfigs, ContradictionsBetweenFields) {
  std::set<std::string> families;
  for (const Lie& lie : contradictions()) {
    Json document = read_json(fs::path(ASSAY_ROOT) / "cases" / "models" / (std::string(lie.config) + ".config.json"));
    families.insert(document.at("model"));
    const Pointer field(lie.field);
    document["config"][field] = lie.value;
    const std::string text = refusal(document), named = lie.named ? lie.named : field.back();
    EXPECT_NE(text.find(named), std::string::npos)
        << lie.config << " " << lie.field << " = " << lie.value << " gave: '" << text << "'";
  }
  EXPECT_EQ(families.size(), model_specs().size());
}

TEST(LyingConfigs, FieldsThatNobodyReads) {
  for (const ModelSpec& spec : model_specs()) {
    const fs::path file = fs::path(ASSAY_ROOT) / "cases" / "models" / spec.name / "tiny.config.json";
    for (const auto& [name, value] : {std::pair<const char*, Json>{"pad_token_id", "many"},
                                      {"eos_token_id", {"many"}},
                                      {"initializer_range", "wide"},
                                      {"dtype", 32},
                                      {"max_position_embeddings", -5}}) {
      Json document = read_json(file);
      Json& fields = document["config"];
      (fields.contains("text_config") ? fields["text_config"] : fields)[name] = value;
      EXPECT_NE(refusal(document).find(name), std::string::npos) << spec.name << " " << name;
    }
  }
}

}  // namespace
}  // namespace assay

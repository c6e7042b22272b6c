#include "cases/spec/models/qwen3_5_text.hpp"

#include <fmt/format.h>

#include "cases/spec/blocks/rotary.hpp"

namespace assay {

namespace {

bool is_nested(const ModelConfig& config) { return FieldReader(config).has("text_config"); }

// The last four belong to the multi-token prediction of released files, whose weights the original does not load.
const std::vector<std::string>& text_fields() {
  static const std::vector<std::string> names = {"num_attention_heads",
                                                 "num_key_value_heads",
                                                 "head_dim",
                                                 "hidden_act",
                                                 "max_position_embeddings",
                                                 "rms_norm_eps",
                                                 "rope_parameters",
                                                 "rope_scaling",
                                                 "rope_theta",
                                                 "partial_rotary_factor",
                                                 "attention_bias",
                                                 "attention_dropout",
                                                 "attn_output_gate",
                                                 "linear_conv_kernel_dim",
                                                 "linear_key_head_dim",
                                                 "linear_value_head_dim",
                                                 "linear_num_key_heads",
                                                 "linear_num_value_heads",
                                                 "layer_types",
                                                 "full_attention_interval",
                                                 "mamba_ssm_dtype",
                                                 "mlp_only_layers",
                                                 "mtp_num_hidden_layers",
                                                 "mtp_use_dedicated_embeddings"};
  return names;
}

void check_wrapper(const ModelConfig& config, const std::string& family) {
  const FieldReader top(config), text = qwen3_5_text(config);
  top.check_only({"model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "text_config",
                  "vision_config", "image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id",
                  "tie_word_embeddings"});
  top.check_word("model_type", family);
  // The causal language model reads the inner one, the multimodal class the outer one: a file where they differ is two
  // models.
  const bool is_tied = text.flag("tie_word_embeddings", false);
  if (top.flag("tie_word_embeddings", is_tied) != is_tied)
    top.refuse("tie_word_embeddings", fmt::format("what text_config has, {}", is_tied));
}

void check_sections(const FieldReader& text) {
  for (const char* holder : {"rope_parameters", "rope_scaling"}) {
    if (!text.has(holder) || !text.value(holder).contains("mrope_section")) continue;
    const int64_t pairs = read_rotary(text, text.size("head_dim", 256), 10000, 0.25).width / 2;
    const std::string expected = fmt::format("three whole numbers that add up to {} as its mrope_section", pairs);
    const auto& sections = text.value(holder).at("mrope_section");
    if (!sections.is_array() || sections.size() != 3) text.refuse(holder, expected);
    int64_t sum = 0;
    for (const auto& section : sections) {
      if (!section.is_number_unsigned() || section.get<uint64_t>() > static_cast<uint64_t>(pairs))
        text.refuse(holder, expected);
      sum += section.get<int64_t>();
    }
    if (sum != pairs) text.refuse(holder, expected);
  }
}

}  // namespace

FieldReader qwen3_5_text(const ModelConfig& config) {
  const FieldReader top(config);
  return is_nested(config) ? top.section("text_config") : top;
}

std::string qwen3_5_prefix(const ModelConfig& config) { return is_nested(config) ? "model.language_model." : "model."; }

void check_qwen3_5(const ModelConfig& config, const std::string& family, const std::vector<std::string>& own) {
  if (is_nested(config)) check_wrapper(config, family);
  const FieldReader text = qwen3_5_text(config);
  std::vector<std::string> known = text_fields();
  known.insert(known.end(), own.begin(), own.end());
  text.check_known(known);
  const std::string type = family + "_text";
  if (!is_nested(config) && !text.has("model_type"))
    text.refuse("model_type", fmt::format("\"{}\" where there is no text_config", type));
  text.check_word("model_type", type);
  // The original does not read it: its attention always has the gate.
  if (!text.flag("attn_output_gate", true)) text.refuse("attn_output_gate", "true");
  if (text.has("mlp_only_layers") && text.value("mlp_only_layers") != nlohmann::json::array())
    text.refuse("mlp_only_layers", "an empty list: the layers are all alike");
  check_sections(text);
}

}  // namespace assay

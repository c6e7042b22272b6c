#include "cases/spec/models/lfm2.hpp"

#include <fmt/format.h>

#include "cases/spec/model_spec.hpp"

namespace assay {

namespace {

// Python's int(x * y) at each step, in its order.
int64_t feed_forward_width(const FieldReader& read) {
  const int64_t given = read.size("block_ff_dim", read.size("intermediate_size", 12288));
  const int64_t multiple = read.size("block_multiple_of", 256);
  const double multiplier = read.positive("block_ffn_dim_multiplier", 1.0);
  if (!read.flag("block_auto_adjust_ff_dim", true)) return given;
  const auto two_thirds = static_cast<int64_t>(2 * static_cast<double>(given) / 3);
  // null keeps the two thirds as they are, unlike a missing field.
  if (read.is_null("block_ffn_dim_multiplier")) {
    if (two_thirds < 1) read.refuse("intermediate_size", "2 or more where it is adjusted");
    return two_thirds;
  }
  const double scaled = multiplier * static_cast<double>(two_thirds);
  if (!(scaled >= 1 && scaled <= static_cast<double>(FieldReader::kLargestSize)))
    read.refuse("block_ffn_dim_multiplier",
                fmt::format("int(it * {}) from 1 to {}", two_thirds, FieldReader::kLargestSize));
  return multiple * ((static_cast<int64_t>(scaled) + multiple - 1) / multiple);
}

}  // namespace

Lfm2Backbone lfm2_fields(const ModelConfig& config) {
  const FieldReader read(config);
  Lfm2Backbone model = read_lfm2_backbone(read, 2560, /*has_indices=*/true);
  model.dense.width = feed_forward_width(read);
  return model;
}

namespace {

// Fields of released files that the original does not read: they may only repeat what it computes anyway.
void check_repeated(const FieldReader& read, const Lfm2Backbone& model) {
  for (const char* name : {"block_dim", "conv_dim", "conv_dim_out"})
    if (read.has(name) && read.value(name) != model.hidden_size)
      read.refuse(name, fmt::format("hidden_size = {}", model.hidden_size));
  if (read.has("num_heads") && read.value("num_heads") != model.attention.heads)
    read.refuse("num_heads", fmt::format("num_attention_heads = {}", model.attention.heads));
  if (read.has("block_norm_eps") && read.value("block_norm_eps") != model.norm_eps)
    read.refuse("block_norm_eps", fmt::format("norm_eps = {}", model.norm_eps));
  for (const char* name : {"block_use_swiglu", "use_pos_enc"})
    if (!read.flag(name, true)) read.refuse(name, "true");
}

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"intermediate_size",
                    "block_ff_dim",
                    "block_auto_adjust_ff_dim",
                    "block_ffn_dim_multiplier",
                    "block_multiple_of",
                    "layer_types",
                    "full_attn_idxs",
                    "num_attention_heads",
                    "num_key_value_heads",
                    "head_dim",
                    "norm_eps",
                    "conv_bias",
                    "conv_L_cache",
                    "rope_parameters",
                    "rope_theta",
                    "rope_scaling",
                    "partial_rotary_factor",
                    "theta",
                    "max_position_embeddings",
                    "tie_embedding",
                    "block_dim",
                    "conv_dim",
                    "conv_dim_out",
                    "num_heads",
                    "block_norm_eps",
                    "block_use_swiglu",
                    "use_pos_enc",
                    "block_mlp_init_scale",
                    "block_out_init_scale",
                    "block_use_xavier_init",
                    "conv_use_xavier_init"});
  read.check_word("model_type", "lfm2");
  const Lfm2Backbone model = lfm2_fields(config);
  check_repeated(read, model);
  check_lfm2_backbone(read, model);
}

std::vector<WeightSpec> weights(const ModelConfig& config) { return lfm2_weights(lfm2_fields(config)); }

std::vector<ProbeSpec> probes(const ModelConfig& config) { return lfm2_probes(lfm2_fields(config)); }

std::vector<std::string> ops(const ModelConfig& config) { return lfm2_ops(lfm2_fields(config)); }

int64_t vocabulary(const ModelConfig& config) { return lfm2_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_lfm2;
const ModelSpec k_lfm2 = {"lfm2", "Lfm2ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

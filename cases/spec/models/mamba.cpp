#include "cases/spec/models/mamba.hpp"

#include <fmt/format.h>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {
constexpr int64_t kMostLayers = 10'000;  // the tables of weights and probes have rows for each
}  // namespace

MambaFields mamba_fields(const ModelConfig& config) {
  const FieldReader read(config);
  MambaFields f{};
  f.vocab_size = read.size("vocab_size", 50280, 2);
  f.hidden_size = read.size("hidden_size", 768);
  f.intermediate_size = read.expanded(f.hidden_size, 2);
  f.state_size = read.size("state_size", 16);
  f.conv_kernel = read.size("conv_kernel", 4, 2, 4);
  const bool is_auto = !read.has("time_step_rank") || config.fields.at("time_step_rank") == "auto";
  if (!is_auto && config.fields.at("time_step_rank").is_string()) read.refuse("time_step_rank", "\"auto\" or a size");
  f.time_step_rank = is_auto ? (f.hidden_size + 15) / 16 : read.size("time_step_rank", 1);
  f.num_hidden_layers = read.size("num_hidden_layers", 32, 1, kMostLayers);
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  f.use_bias = read.flag("use_bias", false);
  f.use_conv_bias = read.flag("use_conv_bias", true);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", true);
  return f;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"model_type",
                    "architectures",
                    "torch_dtype",
                    "dtype",
                    "transformers_version",
                    "layer_types",
                    "vocab_size",
                    "hidden_size",
                    "intermediate_size",
                    "state_size",
                    "num_hidden_layers",
                    "layer_norm_epsilon",
                    "pad_token_id",
                    "bos_token_id",
                    "eos_token_id",
                    "expand",
                    "conv_kernel",
                    "use_bias",
                    "use_conv_bias",
                    "hidden_act",
                    "initializer_range",
                    "residual_in_fp32",
                    "time_step_rank",
                    "time_step_scale",
                    "time_step_min",
                    "time_step_max",
                    "time_step_init_scheme",
                    "time_step_floor",
                    "rescale_prenorm_residual",
                    "use_cache",
                    "use_mambapy",
                    "use_associative_scan",
                    "tie_word_embeddings"});
  read.check_word("model_type", "mamba");
  read.check_word("hidden_act", "silu");
  const MambaFields f = mamba_fields(config);
  read.check_flags(
      {"residual_in_fp32", "rescale_prenorm_residual", "use_cache", "use_mambapy", "use_associative_scan"});
  read.check_intermediate_size(f.intermediate_size);
  const auto H = static_cast<double>(f.hidden_size), I = static_cast<double>(f.intermediate_size),
             N = static_cast<double>(f.state_size), R = static_cast<double>(f.time_step_rank);
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H, 3 * I * H + I * (2 * R + 4 * N + 16),
                      f.num_hidden_layers);
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const MambaFields f = mamba_fields(config);
  const int64_t H = f.hidden_size, I = f.intermediate_size, N = f.state_size, R = f.time_step_rank;
  std::vector<WeightSpec> table;
  table.push_back({"backbone.embeddings.weight", {f.vocab_size, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("backbone.layers.{}.", l), mixer = layer + "mixer.";
    table.push_back({layer + "norm.weight", {H}, Role::kNorm, 1, {}});
    table.push_back({mixer + "in_proj.weight", {2 * I, H}, Role::kInProj, H, {}});
    if (f.use_bias) table.push_back({mixer + "in_proj.bias", {2 * I}, Role::kLinearBias, 1, {}});
    table.push_back({mixer + "conv1d.weight", {I, 1, f.conv_kernel}, Role::kConv, f.conv_kernel, {}});
    if (f.use_conv_bias) table.push_back({mixer + "conv1d.bias", {I}, Role::kConvBias, 1, {}});
    // B and C multiply each other, dt_low goes through another projection: unlike scales keep all three visible.
    table.push_back({mixer + "x_proj.weight", {R + 2 * N, I}, Role::kXProj, I, {{0, R, 2.0}}});
    table.push_back({mixer + "dt_proj.weight", {I, R}, Role::kDtProj, R, {}});
    table.push_back({mixer + "dt_proj.bias", {I}, Role::kDtBias, 1, {}});
    table.push_back({mixer + "A_log", {I, N}, Role::kALog, 1, {}});
    table.push_back({mixer + "D", {I}, Role::kSkip, 1, {}});
    // A tied head favours a token's own embedding: the blocks must add more than it.
    table.push_back(
        {mixer + "out_proj.weight", {H, I}, Role::kOutProj, I, {{0, H, f.tie_word_embeddings ? 4.0 : 1.0}}});
    if (f.use_bias) table.push_back({mixer + "out_proj.bias", {H}, Role::kLinearBias, 1, {}});
  }
  table.push_back({"backbone.norm_f.weight", {H}, Role::kNorm, 1, {}});
  if (!f.tie_word_embeddings) table.push_back({"lm_head.weight", {f.vocab_size, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const MambaFields f = mamba_fields(config);
  const int64_t H = f.hidden_size, I = f.intermediate_size, N = f.state_size, R = f.time_step_rank;
  std::vector<ProbeSpec> table;
  table.push_back({"embed", {H}, false, "embedding", -1, 1});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l), mixer = layer + "mixer.";
    table.push_back({layer + "norm", {H}, false, "rms_norm", l, 1});
    table.push_back({mixer + "in_proj", {2 * I}, false, "linear", l, 1});
    table.push_back({mixer + "conv1d", {I}, false, "causal_conv1d", l, 1});
    table.push_back({mixer + "x_proj", {R + 2 * N}, false, "linear", l, 1});
    table.push_back({mixer + "dt", {I}, false, "dt", l, 1});
    table.push_back({mixer + "scan", {I}, false, "selective_scan", l, 1});
    table.push_back({mixer + "gate", {I}, false, "gate", l, 1});
    table.push_back({mixer + "out_proj", {H}, false, "linear", l, 1});
    table.push_back({layer + "out", {H}, false, "residual", l, 1});
  }
  table.push_back({"norm_f", {H}, false, "rms_norm", -1, 1});
  table.push_back({"logits", {f.vocab_size}, false, "linear", -1, 1});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string mixer = fmt::format("layers.{}.mixer.", l);
    table.push_back({mixer + "conv_state", {I, f.conv_kernel}, true, "causal_conv1d", l, 1});
    table.push_back({mixer + "ssm_state", {I, N}, true, "selective_scan", l, 1});
  }
  return table;
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "selective_scan"};
}

int64_t vocabulary(const ModelConfig& config) { return mamba_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_mamba;
const ModelSpec k_mamba = {"mamba", "MambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

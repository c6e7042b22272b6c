#include "cases/spec/models/mamba2.hpp"

#include <fmt/format.h>

#include <limits>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

namespace {
constexpr int64_t kMostLayers = 10'000;  // the tables of weights and probes have rows for each
}  // namespace

Mamba2Fields mamba2_fields(const ModelConfig& config) {
  const FieldReader read(config);
  Mamba2Fields f{};
  f.vocab_size = read.size("vocab_size", 32768, 2);
  f.hidden_size = read.size("hidden_size", 4096);
  f.intermediate_size = read.expanded(f.hidden_size, 2);
  f.state_size = read.size("state_size", 128);
  f.conv_kernel = read.size("conv_kernel", 4, 2, 4);
  f.num_heads = read.size("num_heads", 128);
  f.head_dim = read.size("head_dim", 64);
  if (f.num_heads * f.head_dim != f.intermediate_size)
    read.refuse("num_heads", fmt::format("num_heads * head_dim = int(expand * hidden_size) = {} (head_dim is {})",
                                         f.intermediate_size, f.head_dim));
  f.n_groups = read.size("n_groups", 8);
  if (f.num_heads % f.n_groups != 0) read.refuse("n_groups", fmt::format("a divisor of num_heads = {}", f.num_heads));
  f.chunk_size = read.size("chunk_size", 256);
  f.num_hidden_layers = read.size("num_hidden_layers", 64, 1, kMostLayers);
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  const auto limits = read.limits("time_step_limit", {0.0, std::numeric_limits<double>::infinity()});
  f.dt_min = limits.first;
  f.dt_max = limits.second;
  f.use_bias = read.flag("use_bias", false);
  f.use_conv_bias = read.flag("use_conv_bias", true);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);
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
                    "num_heads",
                    "head_dim",
                    "n_groups",
                    "chunk_size",
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
                    "time_step_min",
                    "time_step_max",
                    "time_step_floor",
                    "time_step_limit",
                    "rescale_prenorm_residual",
                    "use_cache",
                    "rms_norm",
                    "norm_before_gate",
                    "tie_word_embeddings"});
  read.check_word("model_type", "mamba2");
  read.check_word("hidden_act", "silu");
  const Mamba2Fields f = mamba2_fields(config);
  read.check_flags({"residual_in_fp32", "rescale_prenorm_residual", "use_cache", "rms_norm", "norm_before_gate"});
  read.check_intermediate_size(f.intermediate_size);
  const auto H = static_cast<double>(f.hidden_size), I = static_cast<double>(f.intermediate_size),
             N = static_cast<double>(f.state_size), C = static_cast<double>(f.conv_dim());
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H, (3 * I + C) * H + 12 * C + I * N, f.num_hidden_layers);
}

// Groups of x at unlike scales: a gated norm over all of I instead of over each group then shows.
std::vector<WeightSpec::RowScale> group_scales(const Mamba2Fields& f) {
  const int64_t I = f.intermediate_size, width = I / f.n_groups;
  std::vector<WeightSpec::RowScale> scales;
  for (int64_t g = 0; g < f.n_groups; ++g)
    scales.push_back({I + g * width, I + (g + 1) * width, g % 2 == 0 ? 0.6 : 1.8});
  const int64_t dt_rows = I + f.conv_dim();
  // dt must differ from token to token without leaving the useful range of softplus.
  scales.push_back({dt_rows, dt_rows + f.num_heads, 0.5});
  return scales;
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const Mamba2Fields f = mamba2_fields(config);
  const int64_t H = f.hidden_size, I = f.intermediate_size, projected = I + f.conv_dim() + f.num_heads;
  std::vector<WeightSpec> table;
  table.push_back({"backbone.embeddings.weight", {f.vocab_size, H}, Role::kEmbedding, H, {}});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("backbone.layers.{}.", l), mixer = layer + "mixer.";
    table.push_back({layer + "norm.weight", {H}, Role::kNorm, 1, {}});
    table.push_back({mixer + "dt_bias", {f.num_heads}, Role::kDtBias, 1, {}});
    table.push_back({mixer + "A_log", {f.num_heads}, Role::kALog, 1, {}});
    table.push_back({mixer + "D", {f.num_heads}, Role::kSkip, 1, {}});
    table.push_back({mixer + "in_proj.weight", {projected, H}, Role::kInProj, H, group_scales(f)});
    if (f.use_bias) table.push_back({mixer + "in_proj.bias", {projected}, Role::kLinearBias, 1, {}});
    table.push_back({mixer + "conv1d.weight", {f.conv_dim(), 1, f.conv_kernel}, Role::kConv, f.conv_kernel, {}});
    if (f.use_conv_bias) table.push_back({mixer + "conv1d.bias", {f.conv_dim()}, Role::kConvBias, 1, {}});
    table.push_back({mixer + "norm.weight", {I}, Role::kGatedNorm, 1, {}});
    table.push_back({mixer + "out_proj.weight", {H, I}, Role::kOutProj, I, {}});
    if (f.use_bias) table.push_back({mixer + "out_proj.bias", {H}, Role::kLinearBias, 1, {}});
  }
  table.push_back({"backbone.norm_f.weight", {H}, Role::kNorm, 1, {}});
  if (!f.tie_word_embeddings) table.push_back({"lm_head.weight", {f.vocab_size, H}, Role::kHead, H, {}});
  return table;
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const Mamba2Fields f = mamba2_fields(config);
  const int64_t H = f.hidden_size, I = f.intermediate_size, C = f.conv_dim(), Nh = f.num_heads, P = f.head_dim;
  std::vector<ProbeSpec> table;
  table.push_back({"embed", {H}, false, "embedding", -1, 1});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string layer = fmt::format("layers.{}.", l), mixer = layer + "mixer.";
    table.push_back({layer + "norm", {H}, false, "rms_norm", l, 1});
    table.push_back({mixer + "in_proj", {I + C + Nh}, false, "linear", l, 1});
    table.push_back({mixer + "conv1d", {C}, false, "causal_conv1d", l, 1});
    table.push_back({mixer + "dt", {Nh}, false, "dt", l, 1});
    table.push_back({mixer + "ssd", {Nh, P}, false, "ssd", l, 1});
    table.push_back({mixer + "norm", {I}, false, "gated_rms_norm", l, 1});
    table.push_back({mixer + "out_proj", {H}, false, "linear", l, 1});
    table.push_back({layer + "out", {H}, false, "residual", l, 1});
  }
  table.push_back({"norm_f", {H}, false, "rms_norm", -1, 1});
  table.push_back({"logits", {f.vocab_size}, false, "linear", -1, 1});
  for (int64_t l = 0; l < f.num_hidden_layers; ++l) {
    const std::string mixer = fmt::format("layers.{}.mixer.", l);
    table.push_back({mixer + "conv_state", {C, f.conv_kernel}, true, "causal_conv1d", l, 1});
    table.push_back({mixer + "ssm_state", {Nh, P, f.state_size}, true, "ssd", l, Nh});
  }
  return table;
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "ssd", "gated_rms_norm"};
}

int64_t vocabulary(const ModelConfig& config) { return mamba2_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_mamba2;
const ModelSpec k_mamba2 = {"mamba2", "Mamba2ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

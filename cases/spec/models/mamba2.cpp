#include "cases/spec/models/mamba2.hpp"

#include <fmt/format.h>

#include <limits>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

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
  f.num_hidden_layers = read.layers(64);
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  const auto limits = read.limits("time_step_limit", {0.0, std::numeric_limits<double>::infinity()});
  f.dt_min = limits.first;
  f.dt_max = limits.second;
  f.use_bias = read.flag("use_bias", false);
  f.use_conv_bias = read.flag("use_conv_bias", true);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", false);
  return f;
}

PureBackbone Mamba2Fields::backbone() const {
  return {vocab_size, hidden_size, num_hidden_layers, tie_word_embeddings};
}

Mamba2MixerShape Mamba2Fields::mixer() const {
  return {.hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .state_size = state_size,
          .conv_kernel = conv_kernel,
          .heads = num_heads,
          .head_dim = head_dim,
          .groups = n_groups,
          .chunk_size = chunk_size,
          .epsilon = layer_norm_epsilon,
          .dt_min = dt_min,
          .dt_max = dt_max,
          .has_in_bias = use_bias,
          .has_out_bias = use_bias,
          .has_conv_bias = use_conv_bias};
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"layer_types",   "intermediate_size", "state_size",      "num_heads",
                    "head_dim",      "n_groups",          "chunk_size",      "layer_norm_epsilon",
                    "expand",        "conv_kernel",       "use_bias",        "use_conv_bias",
                    "hidden_act",    "residual_in_fp32",  "time_step_rank",  "time_step_min",
                    "time_step_max", "time_step_floor",   "time_step_limit", "rescale_prenorm_residual",
                    "rms_norm",      "norm_before_gate"});
  read.check_word("model_type", "mamba2");
  read.check_word("hidden_act", "silu");
  const Mamba2Fields f = mamba2_fields(config);
  read.check_flags({"residual_in_fp32", "rescale_prenorm_residual", "use_cache", "rms_norm", "norm_before_gate"});
  read.check_intermediate_size(f.intermediate_size);
  const auto H = static_cast<double>(f.hidden_size), I = static_cast<double>(f.intermediate_size),
             N = static_cast<double>(f.state_size), C = static_cast<double>(f.conv_dim());
  read.check_elements(2 * static_cast<double>(f.vocab_size) * H, (3 * I + C) * H + 12 * C + I * N, f.num_hidden_layers);
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const Mamba2Fields f = mamba2_fields(config);
  return pure_weights(f.backbone(), f.mixer());
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const Mamba2Fields f = mamba2_fields(config);
  return pure_probes(f.backbone(), f.mixer());
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "ssd", "gated_rms_norm"};
}

int64_t vocabulary(const ModelConfig& config) { return mamba2_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_mamba2;
const ModelSpec k_mamba2 = {"mamba2", "Mamba2ForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

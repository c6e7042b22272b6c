#include "cases/spec/models/mamba.hpp"

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

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
  f.num_hidden_layers = read.layers(32);
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  f.use_bias = read.flag("use_bias", false);
  f.use_conv_bias = read.flag("use_conv_bias", true);
  f.tie_word_embeddings = read.flag("tie_word_embeddings", true);
  return f;
}

PureBackbone MambaFields::backbone() const { return {vocab_size, hidden_size, num_hidden_layers, tie_word_embeddings}; }

MambaMixerShape MambaFields::mixer() const {
  return {.hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .state_size = state_size,
          .conv_kernel = conv_kernel,
          .time_step_rank = time_step_rank,
          .has_bias = use_bias,
          .has_conv_bias = use_conv_bias,
          .out_scale = tie_word_embeddings ? 4.0 : 1.0};
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"layer_types", "intermediate_size", "state_size", "layer_norm_epsilon", "expand", "conv_kernel",
                    "use_bias", "use_conv_bias", "hidden_act", "residual_in_fp32", "time_step_rank", "time_step_scale",
                    "time_step_min", "time_step_max", "time_step_init_scheme", "time_step_floor",
                    "rescale_prenorm_residual", "use_mambapy", "use_associative_scan"});
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
  return pure_weights(f.backbone(), f.mixer());
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const MambaFields f = mamba_fields(config);
  return pure_probes(f.backbone(), f.mixer());
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "selective_scan"};
}

int64_t vocabulary(const ModelConfig& config) { return mamba_fields(config).vocab_size; }

}  // namespace

extern const ModelSpec k_mamba;
const ModelSpec k_mamba = {"mamba", "MambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

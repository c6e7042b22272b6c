#include "cases/spec/models/falcon_mamba.hpp"

#include "cases/spec/model_spec.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

FalconMambaFields falcon_mamba_fields(const ModelConfig& config) {
  const FieldReader read(config);
  FalconMambaFields f{};
  f.backbone = {.vocab_size = read.size("vocab_size", 50280, 2),
                .hidden_size = read.size("hidden_size", 768),
                .num_hidden_layers = read.layers(32),
                .tie_word_embeddings = read.flag("tie_word_embeddings", true)};
  f.layer_norm_epsilon = read.positive("layer_norm_epsilon", 1e-5);
  f.mixer = read_mamba_mixer(read, f.backbone.hidden_size,
                             {.state_size = "state_size",
                              .conv_kernel = "conv_kernel",
                              .expand = "expand",
                              .time_step_rank = "time_step_rank",
                              .has_bias = "use_bias",
                              .has_conv_bias = "use_conv_bias"});
  f.mixer.selection_norm = MambaMixerShape::SelectionNorm::kWeightless;
  f.mixer.epsilon = read.positive("mixer_rms_eps", 1e-6);
  f.mixer.out_scale = f.backbone.tie_word_embeddings ? 4.0 : 1.0;
  return f;
}

namespace {

void check(const ModelConfig& config) {
  const FieldReader read(config);
  read.check_known({"intermediate_size",
                    "state_size",
                    "layer_norm_epsilon",
                    "mixer_rms_eps",
                    "expand",
                    "conv_kernel",
                    "use_bias",
                    "use_conv_bias",
                    "hidden_act",
                    "residual_in_fp32",
                    "time_step_rank",
                    "time_step_scale",
                    "time_step_min",
                    "time_step_max",
                    "time_step_init_scheme",
                    "time_step_floor",
                    "rescale_prenorm_residual",
                    "use_mambapy",
                    "use_falcon_mambapy",
                    "use_associative_scan"});
  read.check_word("model_type", "falcon_mamba");
  read.check_word("hidden_act", "silu");
  const FalconMambaFields f = falcon_mamba_fields(config);
  read.check_flags({"residual_in_fp32", "rescale_prenorm_residual", "use_cache", "use_mambapy", "use_falcon_mambapy",
                    "use_associative_scan"});
  read.check_intermediate_size(f.mixer.intermediate_size);
  const auto V = static_cast<double>(f.backbone.vocab_size), H = static_cast<double>(f.backbone.hidden_size);
  read.check_elements(2 * V * H, count_elements(f.mixer), f.backbone.num_hidden_layers);
}

std::vector<WeightSpec> weights(const ModelConfig& config) {
  const FalconMambaFields f = falcon_mamba_fields(config);
  return pure_weights(f.backbone, f.mixer);
}

std::vector<ProbeSpec> probes(const ModelConfig& config) {
  const FalconMambaFields f = falcon_mamba_fields(config);
  return pure_probes(f.backbone, f.mixer);
}

std::vector<std::string> ops(const ModelConfig&) {
  return {"embedding", "rms_norm", "linear", "causal_conv1d", "selective_scan"};
}

int64_t vocabulary(const ModelConfig& config) { return falcon_mamba_fields(config).backbone.vocab_size; }

}  // namespace

extern const ModelSpec k_falcon_mamba;
const ModelSpec k_falcon_mamba = {"falcon_mamba", "FalconMambaForCausalLM", check, weights, probes, ops, vocabulary};

}  // namespace assay

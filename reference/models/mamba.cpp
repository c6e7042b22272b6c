#include "reference/models/mamba.hpp"

#include "reference/blocks/mamba_mixer.hpp"
#include "reference/ops/embedding.hpp"
#include "reference/ops/linear.hpp"
#include "reference/ops/rms_norm.hpp"

namespace assay::reference {

std::vector<MixerState> Mamba::initial_states(int64_t rows) const {
  std::vector<MixerState> states;
  for (int64_t layer = 0; layer < fields_.num_hidden_layers; ++layer)
    states.push_back({at::zeros({rows, fields_.intermediate_size, fields_.conv_kernel}),
                      at::zeros({rows, fields_.intermediate_size, fields_.state_size})});
  return states;
}

at::Tensor Mamba::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<MixerState>& states,
                          const Pass& pass) const {
  const at::Tensor& embeddings = weights.at("backbone.embeddings.weight");
  at::Tensor h = reference::embedding(ids, embeddings);
  pass.probes.add("embed", h);

  for (int64_t l = 0; l < fields_.num_hidden_layers; ++l) {
    const std::string probe = "layers." + std::to_string(l) + ".", prefix = "backbone." + probe;
    const at::Tensor normed = reference::rms_norm(h, weights.at(prefix + "norm.weight"), fields_.layer_norm_epsilon);
    pass.probes.add(probe + "norm", normed);
    h = h + mamba_mixer(normed, weights, prefix + "mixer.", fields_, states[static_cast<size_t>(l)], pass,
                        probe + "mixer.");
    pass.probes.add(probe + "out", h);
  }

  const at::Tensor normed = reference::rms_norm(h, weights.at("backbone.norm_f.weight"), fields_.layer_norm_epsilon);
  pass.probes.add("norm_f", normed);
  const at::Tensor& head = fields_.tie_word_embeddings ? embeddings : weights.at("lm_head.weight");
  const at::Tensor logits = reference::linear(normed, head);
  pass.probes.add("logits", logits);
  return logits;
}

}  // namespace assay::reference

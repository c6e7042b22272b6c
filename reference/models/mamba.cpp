#include "reference/models/mamba.hpp"

#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba_mixer.hpp"
#include "reference/models/pure_backbone.hpp"

namespace assay::reference {

std::vector<LayerState> Mamba::initial_states(int64_t rows) const {
  std::vector<LayerState> states(static_cast<size_t>(fields_.num_hidden_layers));
  for (LayerState& state : states) initial_state(state, rows, mixer_);
  return states;
}

at::Tensor Mamba::forward(const at::Tensor& ids, const WeightStore& weights, std::vector<LayerState>& states,
                          const Pass& pass) const {
  return pure_backbone(ids, weights, states, pass, fields_.layer_norm_epsilon, fields_.tie_word_embeddings,
                       [&](const at::Tensor& h, const Place& place, LayerState& state) {
                         return mamba_mixer(h, place, mixer_, state, pass);
                       });
}

}  // namespace assay::reference

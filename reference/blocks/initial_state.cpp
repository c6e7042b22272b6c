#include "reference/blocks/initial_state.hpp"

namespace assay::reference {

void initial_state(LayerState& state, int64_t rows, const AttentionShape& shape) {
  state.key = at::zeros({rows, shape.kv_heads, 0, shape.head_dim});
  state.value = at::zeros({rows, shape.kv_heads, 0, shape.head_dim});
}

void initial_state(LayerState& state, int64_t rows, const DeltaMixerShape& shape) {
  state.conv = at::zeros({rows, shape.conv_dim(), shape.conv_kernel});
  state.delta = at::zeros({rows, shape.value_heads, shape.key_dim, shape.value_dim});
}

void initial_state(LayerState& state, int64_t rows, const Mamba2MixerShape& shape) {
  state.conv = at::zeros({rows, shape.conv_dim(), shape.conv_kernel});
  state.ssm = at::zeros({rows, shape.heads, shape.head_dim, shape.state_size});
}

void initial_state(LayerState& state, int64_t rows, const MambaMixerShape& shape) {
  state.conv = at::zeros({rows, shape.intermediate_size, shape.conv_kernel});
  if (shape.heads > 0)
    state.ssm = at::zeros({rows, shape.heads, shape.intermediate_size / shape.heads, shape.state_size});
  else
    state.ssm = at::zeros({rows, shape.intermediate_size, shape.state_size});
}

void initial_state(LayerState& state, int64_t rows, const ShortConvShape& shape) {
  state.conv = at::zeros({rows, shape.hidden_size, shape.conv_kernel});
}

}  // namespace assay::reference

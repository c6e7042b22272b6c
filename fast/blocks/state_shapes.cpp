#include "fast/blocks/state_shapes.hpp"

namespace assay::fast {

void add_state(LayerStateShape& state, const AttentionShape& shape) {
  state.key = state.value = {shape.kv_heads, shape.head_dim};
}

void add_state(LayerStateShape& state, const DeltaMixerShape& shape) {
  state.conv = {shape.conv_dim(), shape.conv_kernel};
  state.delta = {shape.value_heads, shape.key_dim, shape.value_dim};
}

void add_state(LayerStateShape& state, const Mamba2MixerShape& shape) {
  state.conv = {shape.conv_dim(), shape.conv_kernel};
  state.ssm = {shape.heads, shape.head_dim, shape.state_size};
}

void add_state(LayerStateShape& state, const MambaMixerShape& shape) {
  state.conv = {shape.intermediate_size, shape.conv_kernel};
  if (shape.heads > 0)
    state.ssm = {shape.heads, shape.intermediate_size / shape.heads, shape.state_size};
  else
    state.ssm = {shape.intermediate_size, shape.state_size};
}

void add_state(LayerStateShape& state, const ShortConvShape& shape) {
  state.conv = {shape.hidden_size, shape.conv_kernel};
}

void add_state(LayerStateShape& state, const LayerStateShape& other) {
  for (Shape LayerStateShape::*part : {&LayerStateShape::conv, &LayerStateShape::ssm, &LayerStateShape::delta,
                                       &LayerStateShape::key, &LayerStateShape::value})
    if (!(other.*part).empty()) state.*part = other.*part;
}

}  // namespace assay::fast

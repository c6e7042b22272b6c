// initial_state: adds to a layer's state what a block of this shape carries, before the first column.
#pragma once

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/delta_mixer.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/short_conv.hpp"
#include "reference/blocks/layer_state.hpp"

namespace assay::reference {

void initial_state(LayerState& state, int64_t rows, const AttentionShape& shape);
void initial_state(LayerState& state, int64_t rows, const DeltaMixerShape& shape);
void initial_state(LayerState& state, int64_t rows, const Mamba2MixerShape& shape);
void initial_state(LayerState& state, int64_t rows, const MambaMixerShape& shape);
void initial_state(LayerState& state, int64_t rows, const ShortConvShape& shape);

}  // namespace assay::reference

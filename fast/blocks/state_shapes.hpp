// What a layer carries from call to call, by the shapes of its blocks. All of it is zero before the first column, and
// without columns where it grows.
#pragma once

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/delta_mixer.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/short_conv.hpp"

namespace assay::fast {

// Shapes after the batch dimension; empty: the layer has no such state.
struct LayerStateShape {
  Shape conv;   // [C, K]
  Shape ssm;    // [I, N], [nh, I/nh, N] or [Nh, P, N]
  Shape delta;  // [Hv, dk, dv]
  Shape key;    // [nkv, hd], one column
  Shape value;  // [nkv, hd], one column
};

// Adds what a block of this shape carries.
void add_state(LayerStateShape& state, const AttentionShape& shape);
void add_state(LayerStateShape& state, const DeltaMixerShape& shape);
void add_state(LayerStateShape& state, const Mamba2MixerShape& shape);
void add_state(LayerStateShape& state, const MambaMixerShape& shape);
void add_state(LayerStateShape& state, const ShortConvShape& shape);
// Adds what another part of the layer carries.
void add_state(LayerStateShape& state, const LayerStateShape& other);

}  // namespace assay::fast

// MambaMixerShape: the Mamba-1 mixer and its variants (models.md B3).
//
//     x, z = in_proj(h);  x = silu(causal_conv1d(x));  dt_low, B, C = x_proj(x), each normed where the family does
//     dt = softplus(dt_proj(dt_low) + bias);  out_proj(selective_scan(x, dt, -exp(A_log), B, C, D) * silu(z))
//
// heads >= 1 (zamba): in_proj's rows alternate x, z; after the convolution each of nh blocks of I / nh channels goes
// its own way with parameters of its own, stacked by head: x_proj_weight [nh, R + 2N, I/nh], dt_proj_weight [nh, I/nh,
// R], dt_proj_bias, A_log [nh, I/nh, N], D [nh, I/nh].
//
// probes   in_proj [2I], conv1d [I], x_proj [R + 2N], selection [R + 2N] after the norms where there are any, dt [I],
//          scan [I] with the skip and before the gate, gate [I], out_proj [H]; with heads no x_proj, selection
//          [nh, 2N] (B and C of each head), dt and scan [nh, I/nh];
//          states conv_state [I, K], ssm_state [I, N] ([nh, I/nh, N] with heads)
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/tables.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

struct MambaMixerShape {
  enum class SelectionNorm { kNone, kWeightless, kWeighted };
  int64_t hidden_size = 0;        // H
  int64_t intermediate_size = 0;  // I
  int64_t state_size = 0;         // N
  int64_t conv_kernel = 0;        // K
  int64_t time_step_rank = 0;     // R
  int64_t heads = 0;              // nh; 0 = the plain layout
  bool has_bias = false;          // in_proj and out_proj
  bool has_conv_bias = true;
  SelectionNorm selection_norm = SelectionNorm::kNone;  // kWeighted: dt_layernorm, b_layernorm, c_layernorm
  double epsilon = 0;                                   // of the selection norms
  double out_scale = 1;  // of synthetic out_proj rows: larger where a tied head favours a token's own embedding
};

// The names a family's config gives to the mixer's sizes. As they stand: those of jamba and zamba.
struct MambaMixerFields {
  const char* state_size = "mamba_d_state";
  const char* conv_kernel = "mamba_d_conv";
  const char* expand = "mamba_expand";           // I = expand * H, a whole number
  const char* time_step_rank = "mamba_dt_rank";  // "auto" is ceil(H / 16)
  const char* has_bias = "mamba_proj_bias";
  const char* has_conv_bias = "mamba_conv_bias";
};

// The plain mixer of a config, without heads and norms. InputError naming the field.
MambaMixerShape read_mamba_mixer(const FieldReader& read, int64_t hidden_size, const MambaMixerFields& names = {});

// Elements of the weights and of one row's states, in float64: for FieldReader::check_elements.
double count_elements(const MambaMixerShape& shape);

// `prefix` ends with a dot: "backbone.layers.0.mixer.". `probe` likewise: "layers.0.mixer.".
void describe_weights(WeightTable& table, const std::string& prefix, const MambaMixerShape& shape);
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const MambaMixerShape& shape);

}  // namespace assay

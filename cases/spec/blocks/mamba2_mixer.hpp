// Mamba2MixerShape: the Mamba-2 mixer and its variants (models.md B4; M5 for falcon_h1).
//
//     z, x, B, C, dt = multipliers * in_proj(in_multiplier * h);  x, B, C = silu(causal_conv1d(x|B|C))
//     dt = clamp(softplus(dt + dt_bias), dt_min, dt_max);  y = ssd(x, dt, -exp(A_log), B, C, D)
//     out_proj(gate and norm of y with z)
//
// weights  dt_bias, A_log, D [Nh], in_proj [2I + 2GN + Nh, H], conv1d [I + 2GN, 1, K], norm [I] where there is a norm,
//          out_proj [H, I]
// probes   in_proj [2I + 2GN + Nh] (before the multipliers), conv1d [I + 2GN], dt [Nh], ssd [Nh, P],
//          norm [I] (gate and norm; `gate` [I] where there is no norm), out_proj [H];
//          states conv_state [I + 2GN, K], ssm_state [Nh, P, N]
#pragma once

#include <array>
#include <limits>

#include "cases/spec/blocks/tables.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

struct Mamba2MixerShape {
  enum class Gate {
    kGateThenNorm,  // y * silu(z), then RMS norm by group
    kNormThenGate,  // RMS norm by group, then * silu(z)
    kGateOnly,
  };
  int64_t hidden_size = 0;        // H
  int64_t intermediate_size = 0;  // I = Nh * P
  int64_t state_size = 0;         // N
  int64_t conv_kernel = 0;        // K
  int64_t heads = 0;              // Nh
  int64_t head_dim = 0;           // P
  int64_t groups = 1;             // G; head h reads group h / (Nh / G)
  int64_t chunk_size = 256;       // Q
  double epsilon = 0;             // of the gated norm
  double dt_min = 0, dt_max = std::numeric_limits<double>::infinity();
  bool has_in_bias = false, has_out_bias = false, has_conv_bias = true;
  Gate gate = Gate::kGateThenNorm;
  double in_multiplier = 1;
  std::array<double, 5> multipliers = {1, 1, 1, 1, 1};  // on z, x, B, C, dt after in_proj and its bias
  double out_scale = 1;  // of synthetic out_proj rows: larger where a tied head favours a token's own embedding

  int64_t conv_dim() const { return intermediate_size + 2 * groups * state_size; }
  int64_t projected() const { return intermediate_size + conv_dim() + heads; }
};

// From the fields that bamba and granitemoehybrid name alike (models.md M4, M6), with their defaults: mamba_n_heads,
// mamba_d_head, mamba_n_groups, mamba_d_state, mamba_d_conv, mamba_expand, mamba_chunk_size, mamba_conv_bias,
// mamba_proj_bias, time_step_limit. InputError naming the field that does not fit the others.
Mamba2MixerShape read_mamba2_mixer(const FieldReader& read, int64_t hidden_size, double epsilon);

// Elements of the weights and of one row's states, in float64 (FieldReader::check_elements).
double elements_of(const Mamba2MixerShape& shape);

void describe_weights(WeightTable& table, const std::string& prefix, const Mamba2MixerShape& shape);
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const Mamba2MixerShape& shape);

}  // namespace assay

// LayerState: what a layer carries from call to call. A layer has the members that its kind needs; the others stay
// undefined.
//
//   recurrent    conv, and ssm or delta where there is a recurrence
//   attention    key and value
//   both         falcon_h1's parallel layers, the hybrid layers of zamba and zamba2
//   none         feed-forward layers of nemotron_h
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <string>
#include <utility>

namespace assay::reference {

struct LayerState {
  at::Tensor conv;   // [B, C, K] the last K inputs of the convolution, oldest first
  at::Tensor ssm;    // [B, I, N] (mamba), [B, nh, I/nh, N] (zamba), [B, Nh, P, N] (mamba2)
  at::Tensor delta;  // [B, Hv, dk, dv]
  at::Tensor key;    // [B, nkv, T, hd], T columns so far, padding included; as they entered the scores
  at::Tensor value;  // [B, nkv, T, hd]

  // Members and their names below "layers.{l}.", in the order of the probe tables.
  static constexpr std::array<std::pair<const char*, at::Tensor LayerState::*>, 5> members();
  // Those that grow along dimension 2 with the columns.
  static bool grows(at::Tensor LayerState::*member) {
    return member == &LayerState::key || member == &LayerState::value;
  }
};

constexpr std::array<std::pair<const char*, at::Tensor LayerState::*>, 5> LayerState::members() {
  return {{{"mixer.conv_state", &LayerState::conv},
           {"mixer.ssm_state", &LayerState::ssm},
           {"mixer.delta_state", &LayerState::delta},
           {"attn.k_cache", &LayerState::key},
           {"attn.v_cache", &LayerState::value}}};
}

}  // namespace assay::reference

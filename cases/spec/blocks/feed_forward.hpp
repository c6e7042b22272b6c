// FeedForwardShape: a dense feed-forward part (models.md B9).
//
//     gated  down(act(gate_multiplier * gate(x)) * up(x)) * down_multiplier;   plain  down(act(up(x)))
//
// weights  gate, up, down under the family's names, or gate and up as one tensor [2F, in], gate rows first
// probes   act [F], the product that enters down; down_proj [H], after its multiplier
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/tables.hpp"

namespace assay {

enum class Activation { kSilu, kGelu, kRelu2 };  // gelu by erf

struct FeedForwardShape {
  int64_t in_width = 0;     // H
  int64_t width = 0;        // F
  int64_t hidden_size = 0;  // out
  Activation activation = Activation::kSilu;
  bool is_gated = true;
  bool is_fused = false;  // gate and up are one tensor under gate_name
  bool has_bias = false;
  double gate_multiplier = 1, down_multiplier = 1;
  int64_t adapter_rank = 0;  // zamba2: gate_up_proj_adapter_list.{ordinal}.{0,1}; 0 = none
  std::string gate_name = "gate_proj", up_name = "up_proj", down_name = "down_proj";
};

void describe_weights(WeightTable& table, const std::string& prefix, const FeedForwardShape& shape);
void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal, const FeedForwardShape& shape);
// `probe` ends with a dot: "layers.0.ff.".
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const FeedForwardShape& shape);

}  // namespace assay

// ExpertsShape: a router and its experts (models.md B10); shared experts are feed-forward parts of their own.
//
//     y = sum over the chosen e of weight[e] * expert_e(x);  expert as in feed_forward.hpp, without biases
//
// weights  the router's [E, H] under router_name, a selection bias [E] under bias_name, and the experts: one by one
//          (experts.{e}.{gate,up,down}.weight) or stacked ([E, 2F, X] gate rows first, and [E, X, F])
// probes   router [E], the logits; routing [E], the weight of each expert, 0 where it is not chosen (independent of the
//          order of the chosen); experts [H], their weighted sum (after fc2 where the experts are latent)
#pragma once

#include <cstdint>
#include <string>

#include "cases/spec/blocks/feed_forward.hpp"
#include "cases/spec/blocks/tables.hpp"

namespace assay {

struct ExpertsShape {
  enum class Router {
    kSoftmaxTopK,  // softmax over all, then the k largest
    kTopKSoftmax,  // the k largest logits, then softmax over those
    kSigmoid,      // sigmoid; chosen by score + bias, weighted by score; expert groups where n_group > 1
  };
  int64_t hidden_size = 0;  // H
  int64_t width = 0;        // F of each expert
  int64_t count = 0;        // E
  int64_t chosen = 0;       // k
  Router router = Router::kSoftmaxTopK;
  bool normalises = false;  // chosen weights divided by their sum + epsilon
  double epsilon = 0;
  double scaling = 1;
  bool has_selection_bias = false;
  int64_t groups = 1, chosen_groups = 1;  // n_group blocks of neighbouring experts, topk_group of them kept
  Activation activation = Activation::kSilu;
  bool is_gated = true;
  int64_t latent =
      0;  // experts see fc1_latent_proj(x) of this width and fc2_latent_proj brings their sum back; 0 = none
  bool has_latent_bias = false;  // of the two latent projections
  bool is_stacked = false;
  bool keeps_router_float32 = false;  // loaded in 16 bit, the router stays float32, as the selection bias always does
  std::string router_name = "gate.weight", bias_name = "expert_bias";
  // One by one: the last parts of the names. Stacked: whole names below the prefix, up_name unused.
  std::string gate_name = "gate_proj", up_name = "up_proj", down_name = "down_proj";

  int64_t expert_width() const { return latent > 0 ? latent : hidden_size; }  // X
};

// `prefix` ends with a dot: "model.layers.0.mlp.".
void describe_weights(WeightTable& table, const std::string& prefix, const ExpertsShape& shape);
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const ExpertsShape& shape);

}  // namespace assay

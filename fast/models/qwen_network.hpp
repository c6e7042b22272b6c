// make_qwen_network: the layers of Qwen3-Next, Qwen3.5 and Qwen3.5-MoE (models.md M11 to M13) as a hybrid network.
//
//     h += mixer or attention (norm(h));  h += feed-forward part(norm(h));  then norm_f and the head
//
// norms    multiply by 1 + weight; the mixer's gated norm does not
// routed   experts(x) + sigmoid(shared_expert_gate(x)) * shared_expert(x)
#pragma once

#include <memory>
#include <string>

#include "cases/spec/models/qwen_backbone.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_qwen_network(const QwenBackbone& fields, Weights& weights);
// UnsupportedError for sizes that the kernels do not take.
void check_qwen_network(const std::string& config, const QwenBackbone& fields);

}  // namespace assay::fast

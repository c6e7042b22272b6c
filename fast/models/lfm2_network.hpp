// make_lfm2_network: the layers of LFM2 and LFM2-MoE (models.md M8, M9) as a hybrid network.
//
//     h += {short_conv | attention}(operator_norm(h));  h += {dense | experts}(ffn_norm(h)), L times; then
//     embedding_norm, which is the last norm, and the head, the embedding where tied
#pragma once

#include <memory>

#include "cases/spec/blocks/lfm2_backbone.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

std::unique_ptr<Network> make_lfm2_network(const Lfm2Backbone& fields, Weights& weights);
// UnsupportedError for sizes that the kernels do not take.
void check_lfm2_network(const std::string& config, const Lfm2Backbone& fields);

}  // namespace assay::fast

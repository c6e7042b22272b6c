// The two ends of a model: token ids into the residual stream, and its last norm into logits.
#pragma once

#include "fast/blocks/pass.hpp"
#include "fast/blocks/weights.hpp"

namespace assay::fast {

struct TokenEnds {
  Weight embeddings;  // [V, H]
  Weight head;        // [V, H]; the embeddings where they are tied
};

// embeddings: its name. The head is lm_head.weight where the model has one.
TokenEnds token_ends(const Weights& weights, const std::string& embeddings);

// Rows of the ids, times multiplier, [T, H]; probe embed.
Matrix embed(Pass& pass, const TokenEnds& ends, double multiplier = 1);
// normed head^T, times multiplier; probe logits, always.
void logits(Pass& pass, const Matrix& normed, const TokenEnds& ends, double multiplier = 1);

}  // namespace assay::fast

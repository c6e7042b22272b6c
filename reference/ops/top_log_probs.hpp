// top_log_probs: the k largest of each row of logits as log-probabilities, descending, and their places. Of equal
// logits the one at the lower place comes first, as the largest of argmax is the lowest: at::topk promises no order of
// ties.
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct TopLogProbs {
  at::Tensor values;  // [..., k]
  at::Tensor ids;     // int64 [..., k]
};

TopLogProbs top_log_probs(const at::Tensor& logits, int64_t k);  // logits [..., V], k <= V

}  // namespace assay::reference

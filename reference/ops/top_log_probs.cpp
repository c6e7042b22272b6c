#include "reference/ops/top_log_probs.hpp"

namespace assay::reference {

TopLogProbs top_log_probs(const at::Tensor& logits, int64_t k) {
  const at::Tensor order = std::get<1>(logits.sort(/*stable=*/true, /*dim=*/-1, /*descending=*/true));
  const at::Tensor ids = order.narrow(-1, 0, k);
  return {at::log_softmax(logits, -1).gather(-1, ids), ids};
}

}  // namespace assay::reference

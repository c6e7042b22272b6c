#include "reference/ops/segment_sums.hpp"

namespace assay::reference {

at::Tensor segment_sums(const at::Tensor& a) {
  const int64_t length = a.size(2);
  const at::Tensor terms = a.unsqueeze(3).expand({a.size(0), a.size(1), length, length});  // (l, j) = a[l]
  return terms.tril(-1).cumsum(2);                                                         // only l > j, up to l = i
}

}  // namespace assay::reference

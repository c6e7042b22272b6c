#include "reference/counted_memory.hpp"

#include <algorithm>

namespace assay::reference {

at::Tensor counted(const at::Tensor& tensor, Held held, const std::shared_ptr<MemoryCount>& count) {
  const at::Tensor dense = tensor.contiguous();
  const auto bytes = static_cast<int64_t>(dense.nbytes());
  const int64_t weight_bytes = held == Held::kWeight ? bytes : 0;
  ++count->allocations;
  count->bytes += bytes;
  count->weight_bytes += weight_bytes;
  count->peak_bytes = std::max(count->peak_bytes, count->bytes);
  count->peak_weight_bytes = std::max(count->peak_weight_bytes, count->weight_bytes);
  const auto release = [dense, count, bytes, weight_bytes](void*) {
    count->bytes -= bytes;
    count->weight_bytes -= weight_bytes;
  };
  return at::from_blob(dense.data_ptr(), dense.sizes(), release, dense.options());
}

}  // namespace assay::reference

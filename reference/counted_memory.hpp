// Counting the bytes of weights and of preallocated caches by the life of the tensors: the count falls when the last
// holder of a tensor's storage lets go, so whoever holds on to one shows. Temporaries and growing caches are libtorch's
// own and not counted.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

namespace assay::reference {

struct MemoryCount {
  int64_t allocations = 0;
  int64_t bytes = 0, peak_bytes = 0;
  int64_t weight_bytes = 0, peak_weight_bytes = 0;  // the weights' part
};

enum class Held { kWeight, kCache };

// The same values in the same place, counted until nobody holds them. tensor: dense, of its own storage.
at::Tensor counted(const at::Tensor& tensor, Held held, const std::shared_ptr<MemoryCount>& count);

}  // namespace assay::reference

#include "fast/models/call_inputs.hpp"

#include <algorithm>

#include "fast/device/check.hpp"
#include "fast/models/arguments.hpp"

namespace assay::fast {

void place_inputs(Pass& pass, const Call& call, int64_t rows, int64_t past) {
  const cudaStream_t stream = pass.context.stream();
  const int64_t columns = call.tokens.shape()[1];
  const std::vector<int64_t> padding = padding_of(call, rows);
  pass.rows = rows;
  pass.columns = columns;
  pass.past = past;
  pass.tokens = upload<int64_t>(pass.scratch, call.tokens, "tokens", stream).data;
  const HostTensor positions({rows, columns}, positions_of(padding, past, columns));
  pass.positions = upload<int64_t>(pass.scratch, positions, "positions", stream).data;

  const int64_t longest = *std::max_element(padding.begin(), padding.end());
  if (longest == 0) return;
  const std::vector<uint8_t> seen = mask_of(padding, 0, past + columns);
  const Tensor<uint8_t> resident = allocate<uint8_t>(pass.scratch, {rows, past + columns}, "mask");
  check(cudaMemcpyAsync(resident.data, seen.data(), seen.size(), cudaMemcpyHostToDevice, stream), "upload of mask");
  pass.context.synchronize("upload of mask");
  pass.seen_mask = resident.data;
  pass.seen_mask_stride = past + columns;
  if (longest > past) {
    pass.mask = resident.data + past;
    pass.mask_stride = past + columns;
  }
}

}  // namespace assay::fast

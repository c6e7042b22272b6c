#include "fast/blocks/adapter.hpp"

namespace assay::fast {

Adapter adapter(const Weights& weights, const std::string& name) {
  return {weights.at(name + "0.weight"), weights.at(name + "1.weight")};
}

void add_adapter(Pass& pass, const Matrix& x, const Adapter& adapter, const Matrix& y) {
  if (!adapter.narrow) return;
  Scratch scratch(pass.scratch);
  const Matrix low = pass.buffer(adapter.narrow.shape[0], "adapter");
  project(pass, x, adapter.narrow, {}, low);
  project(pass, low, adapter.wide, {}, y, /*accumulate=*/true);
  scratch.close();
}

}  // namespace assay::fast

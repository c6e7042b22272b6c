// Probes: the named tensors of one forward call, copied in the order they are computed. With capture off only those of
// add_always are kept ("logits").
//
// At once      each is downloaded behind the op that made it, so its memory may be used again.
// On device    each is copied into `kept` on the device, so that nothing waits for the host (a graph is recorded);
//              download_kept fetches them after every replay.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/trace.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

struct KeptProbe {
  std::string name;
  Tensor<float> values;
};

class Probes {
 public:
  // kept: null for "at once"; else it outlives the probes.
  Probes(int64_t rows, int64_t columns, bool is_capturing, cudaStream_t stream, Arena* kept = nullptr)
      : rows_(rows), columns_(columns), is_capturing_(is_capturing), stream_(stream), kept_(kept) {}

  bool is_capturing() const { return is_capturing_; }
  // values: [T * n, width / n]; the probe is [B, L, inner...], inner = {width} unless given.
  void add(const std::string& name, const Matrix& values, Shape inner = {}) {
    if (is_capturing_) add_always(name, values, std::move(inner));
  }
  void add_always(const std::string& name, const Matrix& values, Shape inner = {});
  std::vector<NamedTensor> take() { return std::move(probes_); }
  std::vector<KeptProbe> take_kept() { return std::move(kept_probes_); }

 private:
  int64_t rows_, columns_;
  bool is_capturing_;
  cudaStream_t stream_;
  Arena* kept_;
  std::vector<NamedTensor> probes_;
  std::vector<KeptProbe> kept_probes_;
};

std::vector<NamedTensor> download_kept(const std::vector<KeptProbe>& probes, cudaStream_t stream);

}  // namespace assay::fast

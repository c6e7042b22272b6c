// Pass: one forward call on its way through the blocks: where it computes, what it was asked for, and the states of
// each layer. Rows times columns is T: activations are [T, width], row b * L + t.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "fast/blocks/sequence_ops.hpp"
#include "fast/blocks/weights.hpp"
#include "fast/device/context.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

// Copies device tensors to the host in the order they are computed. The copy is queued behind the op that made the
// tensor and waited for, so the memory may be used again at once.
class Probes {
 public:
  Probes(int64_t rows, int64_t columns, bool is_capturing, cudaStream_t stream)
      : rows_(rows), columns_(columns), is_capturing_(is_capturing), stream_(stream) {}

  bool is_capturing() const { return is_capturing_; }
  // values: [T, width]; the probe is [B, L, inner...], inner = {width} unless given.
  void add(const std::string& name, const Matrix& values, Shape inner = {}) {
    if (is_capturing_) add_always(name, values, std::move(inner));
  }
  void add_always(const std::string& name, const Matrix& values, Shape inner = {});
  std::vector<NamedTensor> take() { return std::move(probes_); }

 private:
  int64_t rows_, columns_;
  bool is_capturing_;
  cudaStream_t stream_;
  std::vector<NamedTensor> probes_;
};

// The two states of a recurrent layer; both null in a session without a cache.
struct LayerState {
  float* conv = nullptr;  // [B, C, K]
  float* ssm = nullptr;   // [B, I, N] or [B, Nh, P, N]
};

struct Pass {
  Context& context;
  Arena& scratch;
  Probes& probes;
  int64_t rows = 0;     // B
  int64_t columns = 0;  // L
  const int64_t* tokens = nullptr;
  const uint8_t* mask = nullptr;  // [B, L]; null where every new column is real
  bool is_warm = false;           // states hold earlier columns
  SequenceForm conv_form = SequenceForm::kSequence;
  SequenceForm scan_form = SequenceForm::kSequence;
  std::vector<LayerState> states;  // one a layer

  int64_t tokens_in_all() const { return rows * columns; }
};

// y [T, out] = x weight^T + bias.
void project(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, const Matrix& y);
// Zeroes the rows of padded columns in place; x is dense. Nothing where the pass has no mask.
void mask_padding(Pass& pass, const Matrix& x);

}  // namespace assay::fast

// ResidualStream: the hidden state h [T, H] that the layers add to, and its norms.
//
// An addition waits for the norm behind it, which then does both in one kernel. Whoever needs h itself in between calls
// values().
#pragma once

#include <string>

#include "fast/blocks/norm.hpp"
#include "fast/blocks/pass.hpp"

namespace assay::fast {

class ResidualStream {
 public:
  // h: what embed made. kind: of every norm of h.
  ResidualStream(Pass& pass, const Matrix& h, const NormKind& kind);

  // h += x; probe: h behind it. x stays as it is until the next call of normed or values.
  void add(const Matrix& x, std::string probe);
  // h += scale * x, at once.
  void add_scaled(const Matrix& x, double scale, const std::string& probe);
  // rms_norm(h), kept as `probe`. The next call of normed or normed_with writes over it, and a mixer may zero its
  // padded rows.
  const Matrix& normed(const Weight& weight, const std::string& probe);
  // rms_norm(h + x), x joining the norm alone.
  const Matrix& normed_with(const Matrix& x, const Weight& weight, const std::string& probe);
  const Matrix& values();

 private:
  Pass& pass_;
  Matrix h_, normed_;
  NormKind kind_;
  Matrix added_;  // null: nothing waits
  std::string added_probe_;
};

}  // namespace assay::fast

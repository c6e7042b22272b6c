#include "fast/blocks/residual_stream.hpp"

#include <utility>

namespace assay::fast {

ResidualStream::ResidualStream(Pass& pass, const Matrix& h, const NormKind& kind)
    : pass_(pass), h_(h), normed_(pass.buffer(h.columns, "normed")), kind_(kind) {}

void ResidualStream::add(const Matrix& x, std::string probe) {
  values();
  added_ = x;
  added_probe_ = std::move(probe);
}

void ResidualStream::add_scaled(const Matrix& x, double scale, const std::string& probe) {
  values();
  fast::add_scaled(pass_, x, scale, h_, h_);
  pass_.probes.add(probe, h_);
}

const Matrix& ResidualStream::normed(const Weight& weight, const std::string& probe) {
  if (added_.data == nullptr) {
    norm(pass_, h_, weight, kind_, normed_);
  } else {
    add_and_norm(pass_, added_, h_, h_, weight, kind_, normed_);
    pass_.probes.add(added_probe_, h_);
    added_ = {};
  }
  pass_.probes.add(probe, normed_);
  return normed_;
}

const Matrix& ResidualStream::normed_with(const Matrix& x, const Weight& weight, const std::string& probe) {
  values();
  Scratch scratch(pass_.scratch);
  const Matrix sum = pass_.buffer(h_.columns, "residual stream and more");
  add_and_norm(pass_, x, h_, sum, weight, kind_, normed_);
  scratch.close();
  pass_.probes.add(probe, normed_);
  return normed_;
}

const Matrix& ResidualStream::values() {
  if (added_.data != nullptr) {
    fast::add(pass_, added_, h_, h_);
    pass_.probes.add(added_probe_, h_);
    added_ = {};
  }
  return h_;
}

}  // namespace assay::fast

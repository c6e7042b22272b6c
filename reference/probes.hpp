// Probes: the named tensors of one forward call, in order of computation. With capture off only "logits" is kept.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "cases/spec/trace.hpp"
#include "reference/tensor.hpp"

namespace assay::reference {

class Probes {
 public:
  explicit Probes(bool capture) : capture_(capture) {}

  void add(const std::string& name, const at::Tensor& value) {
    if (capture_ || name == "logits") trace_.probes.push_back({name, to_host(value)});
  }

  Trace take() { return std::move(trace_); }

 private:
  bool capture_;
  Trace trace_;
};

}  // namespace assay::reference

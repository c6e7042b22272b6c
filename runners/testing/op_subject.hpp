// A subject that runs ops only, by plain loops: in the dtype of its inputs as a reference, or in float32 with a fault
// as what is judged. It knows causal_conv1d (sequence, update) and rms_norm.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/subject.hpp"

namespace assay::testing {

struct OpFaults {
  int64_t wrong_at = -1;     // flat index of y that is off by 1 % of 1
  std::string wrong_form;    // only in this form
  bool writes_nan = false;   // there
  bool is_zero = false;      // every output is zero
  bool lacks_state = false;  // no final_state
  bool names_no_kernel = false;
  bool refuses_updates = false;
};

class OpSubject : public Subject {
 public:
  explicit OpSubject(const std::string& name, bool is_accelerated = false, OpFaults faults = {}) : faults_(faults) {
    capabilities_.name = name;
    capabilities_.device = "test";
    capabilities_.is_accelerated = is_accelerated;
    capabilities_.forms = {{"causal_conv1d", {"sequence", "update"}}};
  }

  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Model> load(const ModelConfig&, std::shared_ptr<const WeightSource>, const LoadOptions&) override {
    throw UnsupportedError("op subject", "has no models");
  }

  OpResult run_op(const OpCall& call) override {
    calls.push_back(call);
    if (faults_.refuses_updates && call.form == "update") throw UnsupportedError("op " + call.op, "refused");
    const bool is_wide = call.required("x").dtype() == DType::kF64;
    OpResult result = is_wide ? run<double>(call) : run<float>(call);
    if (capabilities_.is_accelerated && !faults_.names_no_kernel)
      result.kernels = {call.op + "_" + (call.form.empty() ? "rows" : call.form) + "_f32@test"};
    if (!is_wide) spoil(call, result);
    return result;
  }
  OpTiming time_op(const OpCall& call, int repetitions) override {
    timed.push_back(call);
    OpTiming timing{.bytes = 4e6};
    for (int i = 0; i < repetitions; ++i) timing.time_us.push_back(10 + i);
    return timing;
  }

  std::vector<OpCall> calls, timed;

 private:
  template <class T>
  static OpResult run(const OpCall& call) {
    if (call.op == "causal_conv1d") return conv<T>(call);
    if (call.op == "rms_norm") return norm<T>(call);
    throw UnsupportedError("op " + call.op, "is not known here");
  }

  template <class T>
  static constexpr DType dtype() {
    return sizeof(T) == 8 ? DType::kF64 : DType::kF32;
  }

  template <class T>
  static OpResult norm(const OpCall& call) {
    const HostTensor &x = call.required("x"), &weight = call.required("weight");
    HostTensor y(dtype<T>(), x.shape());
    const int64_t width = x.shape().at(1);
    for (int64_t row = 0; row < x.shape().at(0); ++row) {
      T squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += static_cast<T>(x.at(row * width + i) * x.at(row * width + i));
      const T scale = 1 / std::sqrt(squares / static_cast<T>(width) + static_cast<T>(call.attribute("epsilon", 1e-5)));
      for (int64_t i = 0; i < width; ++i)
        y.values<T>()[static_cast<size_t>(row * width + i)] =
            static_cast<T>(weight.at(i)) * static_cast<T>(x.at(row * width + i)) * scale;
    }
    return {{{"y", y}}, {}};
  }

  template <class T>
  static OpResult conv(const OpCall& call) {
    const HostTensor &x = call.required("x"), &weight = call.required("weight");
    const HostTensor *bias = call.input("bias"), *state = call.input("initial_state");
    const int64_t rows = x.shape().at(0), length = x.shape().at(1), channels = x.shape().at(2);
    const int64_t taps = weight.shape().at(1);
    HostTensor y(dtype<T>(), x.shape()), final_state(dtype<T>(), {rows, channels, taps});
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t c = 0; c < channels; ++c) {
        // The input at a time, which is before 0 in the stored window.
        const auto at = [&](int64_t t) -> T {
          if (t >= 0) return static_cast<T>(x.at((b * length + t) * channels + c));
          return state && t >= -taps ? static_cast<T>(state->at((b * channels + c) * taps + taps + t)) : T(0);
        };
        for (int64_t t = 0; t < length; ++t) {
          T sum = bias ? static_cast<T>(bias->at(c)) : T(0);
          for (int64_t j = 0; j < taps; ++j) sum += static_cast<T>(weight.at(c * taps + j)) * at(t - taps + 1 + j);
          if (call.attribute("silu", 1) != 0) sum = sum / (1 + std::exp(-sum));
          y.values<T>()[static_cast<size_t>((b * length + t) * channels + c)] = sum;
        }
        for (int64_t j = 0; j < taps; ++j)
          final_state.values<T>()[static_cast<size_t>((b * channels + c) * taps + j)] = at(length - taps + j);
      }
    return {{{"y", y}, {"final_state", final_state}}, {}};
  }

  void spoil(const OpCall& call, OpResult& result) const {
    const auto y = result.outputs.at(0).value.values<float>();
    const bool is_form = faults_.wrong_form.empty() || faults_.wrong_form == call.form;
    if (is_form && faults_.wrong_at >= 0 && faults_.wrong_at < static_cast<int64_t>(y.size())) {
      float& value = y[static_cast<size_t>(faults_.wrong_at)];
      value = faults_.writes_nan ? std::nanf("") : value + 0.01f;
    }
    if (faults_.is_zero)
      for (NamedTensor& output : result.outputs) output.value = HostTensor(DType::kF32, output.value.shape());
    if (faults_.lacks_state) result.outputs.resize(1);
  }

  Capabilities capabilities_;
  OpFaults faults_;
};

}  // namespace assay::testing

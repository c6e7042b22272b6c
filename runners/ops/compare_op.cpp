#include "runners/ops/compare_op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"
#include "runners/ops/in_parts.hpp"

namespace assay {

namespace {

constexpr double kEpsilon = std::numeric_limits<float>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const HostTensor* output(const OpResult& result, const std::string& name) {
  for (const NamedTensor& tensor : result.outputs)
    if (tensor.name == name) return &tensor.value;
  return nullptr;
}

const HostTensor& reference_output(const OpResult& result, const OpSpec& spec, const OpTensor& tensor,
                                   const Shape& shape, DType dtype) {
  const HostTensor* value = output(result, tensor.name);
  const std::string where = "reference op " + spec.name;
  if (!value) throw InputError(where, "gives no output '" + tensor.name + "'");
  if (value->shape() != shape || value->dtype() != dtype)
    throw InputError(where, fmt::format("output {} is {} {}, not {} {}", tensor.name, to_string(value->shape()),
                                        dtype_name(value->dtype()), to_string(shape), dtype_name(dtype)));
  return *value;
}

golden::Finding finding_at(const std::string& name, const char* what, int64_t flat, const Shape& shape) {
  golden::Finding finding;
  finding.probe = name;
  finding.what = what;
  const std::vector<int64_t> index = coordinates(flat, shape);
  finding.row = index.empty() ? 0 : index[0];
  if (!index.empty()) finding.index.assign(index.begin() + 1, index.end());
  return finding;
}

// The finding of an output that is not there as float32 of this shape.
golden::Tally shape_tally(const std::string& name, const Shape& shape, const HostTensor* got) {
  golden::Tally tally{.probes = 1, .used_by = name};
  if (got && got->shape() == shape && got->dtype() == DType::kF32) return tally;
  tally.used = kInfinity;
  tally.first.emplace();
  tally.first->probe = name;
  tally.first->what = "shape";
  tally.first->detail =
      fmt::format("expected {} float32, got {}", to_string(shape),
                  got ? to_string(got->shape()) + " " + std::string(dtype_name(got->dtype())) : "no such output");
  return tally;
}

golden::Tally finite_tally(const std::string& name, const HostTensor& got) {
  golden::Tally tally;
  const auto values = got.values<float>();
  std::atomic<int64_t> bad = 0, first = got.count();
  in_parts(got.count(), [&](int64_t begin, int64_t end) {
    int64_t count = 0, at = end;
    for (int64_t i = end; i-- > begin;)
      if (!std::isfinite(values[static_cast<size_t>(i)])) ++count, at = i;
    if (count == 0) return;
    bad += count;
    for (int64_t known = first; at < known && !first.compare_exchange_weak(known, at);) continue;
  });
  if (bad == 0) return tally;
  tally.used = kInfinity;
  tally.used_by = name;
  tally.first = finding_at(name, "not finite", first, got.shape());
  tally.first->expected = std::numeric_limits<double>::quiet_NaN();
  tally.first->got = values[static_cast<size_t>(first)];
  tally.first->bad = bad;
  tally.first->of = got.count();
  return tally;
}

golden::Tally compare_tensor(const std::string& name, const ExpectedTensor& expected, const HostTensor* got) {
  const Shape& shape = expected.value.shape();
  golden::Tally tally = shape_tally(name, shape, got);
  if (tally.first) return tally;
  const auto want = expected.value.values<float>();
  const auto have = got->values<float>();
  int64_t first_not_finite = -1, first_bad = -1, not_finite = 0, bad = 0;
  double largest = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (!std::isfinite(have[i])) {
      if (not_finite++ == 0) first_not_finite = static_cast<int64_t>(i);
      continue;
    }
    const double difference = std::abs(static_cast<double>(have[i]) - static_cast<double>(want[i]));
    largest = std::max(largest, difference);
    if (difference > expected.bound && bad++ == 0) first_bad = static_cast<int64_t>(i);
  }
  tally.elements = expected.value.count();
  tally.used = not_finite > 0 || (expected.bound == 0 && largest > 0) ? kInfinity
               : expected.bound == 0                                  ? 0
                                                                      : largest / expected.bound;
  const int64_t flat = not_finite > 0 ? first_not_finite : first_bad;
  if (flat < 0) return tally;
  tally.first = finding_at(name, not_finite > 0 ? "not finite" : "value", flat, shape);
  tally.first->expected = want[static_cast<size_t>(flat)];
  tally.first->got = have[static_cast<size_t>(flat)];
  tally.first->bound = expected.bound;
  tally.first->bad = not_finite > 0 ? not_finite : bad;
  tally.first->of = tally.elements;
  return tally;
}

}  // namespace

bool names_kernel(const std::vector<std::string>& kernels, const std::string& op) {
  return std::any_of(kernels.begin(), kernels.end(), [&op](const std::string& id) { return id.starts_with(op + "_"); });
}

OpCall in_float64(const OpCall& call) {
  OpCall wide = call;
  for (NamedTensor& input : wide.inputs) {
    if (input.value.dtype() != DType::kF32) continue;
    HostTensor value(DType::kF64, input.value.shape());
    const auto from = input.value.values<float>();
    std::copy(from.begin(), from.end(), value.values<double>().begin());
    input.value = std::move(value);
  }
  return wide;
}

ExpectedOutputs expected_outputs(Subject& reference, const OpSpec& spec, const OpPoint& point, const OpCall& call,
                                 const golden::Rule& rule) {
  const OpResult narrow = reference.run_op(call), wide = reference.run_op(in_float64(call));
  ExpectedOutputs expected;
  for (const OpTensor& tensor : spec.outputs) {
    if (!tensor.with.empty() && !point.has_input(*spec.input(tensor.with))) continue;
    const Shape shape = point.shape_of(tensor);
    const HostTensor& value = reference_output(narrow, spec, tensor, shape, DType::kF32);
    const auto exact = reference_output(wide, spec, tensor, shape, DType::kF64).values<double>();
    double floor = 0, scale = 0;
    const auto values = value.values<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || !std::isfinite(exact[i]))
        throw InputError("reference op " + spec.name, fmt::format("output {} is not finite", tensor.name),
                         "the ranges of the case are too wide");
      floor = std::max(floor, std::abs(static_cast<double>(values[i]) - exact[i]));
      scale = std::max(scale, std::abs(static_cast<double>(values[i])));
    }
    if (scale == 0 && expected.hollow.empty()) expected.hollow = fmt::format("output {} is all zero", tensor.name);
    expected.tensors.push_back({tensor.name, {value, rule.factor * std::max(floor, rule.ulps * kEpsilon * scale)}});
  }
  return expected;
}

golden::Tally check_finite(const OpSpec& spec, const OpPoint& point, const OpResult& got) {
  golden::Tally tally;
  for (const OpTensor& tensor : spec.outputs) {
    if (!tensor.with.empty() && !point.has_input(*spec.input(tensor.with))) continue;
    const HostTensor* value = output(got, tensor.name);
    golden::Tally shape = shape_tally(tensor.name, point.shape_of(tensor), value);
    shape.probes = 0;  // counted where it is compared
    tally.merge(shape.first ? shape : finite_tally(tensor.name, *value));
  }
  return tally;
}

golden::Tally compare_outputs(const ExpectedOutputs& expected, const OpResult& got) {
  golden::Tally tally;
  for (const auto& [name, tensor] : expected.tensors) tally.merge(compare_tensor(name, tensor, output(got, name)));
  return tally;
}

}  // namespace assay

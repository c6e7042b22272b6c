#include "runners/bench/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runners/ops/compare_op.hpp"

namespace assay::bench {

namespace {

bool is_cut(const std::string& size) { return size == "B" || size == "L" || size == "T"; }

bool has_size(const OpTensor& tensor, const std::string& size) {
  return std::find(tensor.sizes.begin(), tensor.sizes.end(), size) != tensor.sizes.end();
}

std::string failure(const golden::Finding& first) {
  if (first.what == "shape") return fmt::format("{}: {}", first.probe, first.detail);
  std::vector<int64_t> index{first.row};
  index.insert(index.end(), first.index.begin(), first.index.end());
  return fmt::format("{} [{}] expected {:.6g} got {:.6g} bound {:.2g}, {} of {} elements", first.probe,
                     fmt::join(index, ","), first.expected, first.got, first.bound, first.bad, first.of);
}

}  // namespace

HostTensor part_of(const HostTensor& whole, const OpTensor& tensor, const OpPoint& part) {
  size_t leading = 0;
  while (leading < tensor.sizes.size() && is_cut(tensor.sizes[leading])) ++leading;
  Shape shape = part.shape_of(tensor);
  HostTensor result(whole.dtype(), shape);
  const auto first = shape.begin() + static_cast<std::ptrdiff_t>(leading);
  const int64_t blocks = element_count({shape.begin(), first});
  const size_t block_bytes = static_cast<size_t>(element_count({first, shape.end()})) * size_of(whole.dtype());
  for (int64_t block = 0; block < blocks; ++block) {
    int64_t rest = block, from = 0, stride = 1;
    for (size_t i = leading; i-- > 0;) {
      const int64_t skipped = tensor.sizes[i] == "L" ? 0 : whole.shape()[i] - shape[i];
      from += (rest % shape[i] + skipped) * stride;
      rest /= shape[i];
      stride *= whole.shape()[i];
    }
    std::memcpy(result.bytes().data() + static_cast<size_t>(block) * block_bytes,
                whole.bytes().data() + static_cast<size_t>(from) * block_bytes, block_bytes);
  }
  return result;
}

GateResult gate(const Row& row, const OpCall& call, Subject& subject, Subject& reference, const golden::Rule& rule) {
  const OpSpec& spec = op_spec(row.op);
  OpPoint part = row.point;
  for (const auto& [name, size] : row.gate) part.sizes[name] = size;
  OpCall part_call = call;
  for (NamedTensor& input : part_call.inputs) input.value = part_of(input.value, *spec.input(input.name), part);
  part_call.form.clear();
  const ExpectedOutputs expected = expected_outputs(reference, spec, part, part_call, rule);

  OpCall formed = call;
  formed.form = row.form;
  OpResult whole = subject.run_op(formed);
  if (subject.capabilities().is_accelerated && !names_kernel(whole.kernels, row.op))
    return {.text = fmt::format("no kernel of {} ran; these did: {}", row.op, fmt::join(whole.kernels, " "))};
  const bool has_fewer_columns = row.gate.contains("L") && row.gate.at("L") != row.point.sizes.at("L");
  ExpectedOutputs shown = expected;
  for (const OpTensor& output : spec.outputs) {
    if (has_fewer_columns && !has_size(output, "L"))
      std::erase_if(shown.tensors, [&output](const auto& entry) { return entry.first == output.name; });
    for (NamedTensor& tensor : whole.outputs)
      if (tensor.name == output.name && tensor.value.shape() == row.point.shape_of(output))
        tensor.value = part_of(tensor.value, output, part);
  }
  golden::Tally tally = compare_outputs(shown, whole);
  if (!row.gate.empty()) {
    part_call.form = row.form;
    tally.merge(compare_outputs(expected, subject.run_op(part_call)));
  }
  GateResult result;
  result.used = tally.used;
  result.passed = !tally.first && expected.hollow.empty();
  result.text = !expected.hollow.empty() ? expected.hollow : tally.first ? failure(*tally.first) : "";
  if (result.passed) {
    result.text = "whole";
    if (!row.gate.empty()) {
      std::vector<std::string> parts;
      for (const auto& [name, size] : row.gate) parts.push_back(fmt::format("{} {}", name, size));
      result.text = fmt::format("{}", fmt::join(parts, " "));
    }
  }
  return result;
}

}  // namespace assay::bench

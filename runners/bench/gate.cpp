#include "runners/bench/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runners/ops/compare_op.hpp"

namespace assay::bench {

namespace {

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

Entries gate_entries(const Row& row, const OpCall& call) {
  const OpSpec& spec = op_spec(row.op);
  Entries entries;
  const bool has_queries_last = row.point.sizes.contains("L") && row.point.sizes.contains("T");
  for (const auto& [size, count] : row.gate) {
    const int64_t first = size == "L" && !has_queries_last ? 0 : row.point.sizes.at(size) - count;
    for (int64_t i = 0; i < count; ++i) entries[size].push_back(first + i);
  }
  if (entries.empty()) return entries;
  const Sample rows(spec, row.point, entries);
  for (const OpTensor& input : spec.inputs) {
    if (input.indexes.empty()) continue;
    const HostTensor used = rows.cut(call.required(input.name), input);
    const auto ids = used.values<int64_t>();
    const std::set<int64_t> distinct(ids.begin(), ids.end());
    entries[input.indexes] = {distinct.begin(), distinct.end()};
  }
  return entries;
}

GateResult gate(const Row& row, const OpCall& call, Subject& subject, Subject& reference, const golden::Rule& rule) {
  const OpSpec& spec = op_spec(row.op);
  const Sample sample(spec, row.point, gate_entries(row, call));
  OpCall part = sample.is_whole() ? OpCall{} : sample.cut(call);
  const OpCall& compared = sample.is_whole() ? call : part;
  const ExpectedOutputs expected = [&] {
    OpCall formless = compared;
    formless.form.clear();
    return expected_outputs(reference, spec, sample.part(), formless, rule);
  }();

  OpResult whole = subject.run_op(call);
  if (subject.capabilities().is_accelerated && !names_kernel(whole.kernels, row.op))
    return {.text = fmt::format("no kernel of {} ran; these did: {}", row.op, fmt::join(whole.kernels, " "))};
  const bool has_fewer_columns = row.gate.contains("L") && row.gate.at("L") != row.point.sizes.at("L");
  ExpectedOutputs shown = expected;
  for (const OpTensor& output : spec.outputs) {
    if (has_fewer_columns && !has_size(output, "L"))
      std::erase_if(shown.tensors, [&output](const auto& entry) { return entry.first == output.name; });
  }
  golden::Tally tally;
  if (sample.is_whole()) {
    tally = compare_outputs(shown, whole);
  } else {
    tally = compare_outputs(shown, sample.cut(whole));
    if (tally.first) tally.first = sample.in_whole(*tally.first);
    tally.merge(compare_outputs(expected, subject.run_op(part)));
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

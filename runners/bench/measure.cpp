#include "runners/bench/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases/spec/error.hpp"
#include "runners/ops/problems.hpp"

namespace assay::bench {

using nlohmann::json;

namespace {

OpCall call_of(const Row& row) {
  OpCase op_case;
  op_case.op = row.op;
  op_case.seed = 1;
  OpCall call = draw_call(op_case, row.point);
  call.form = row.form;
  return call;
}

// What no kernel can do says that the op's bytes or flops are counted wrong. What the cache holds need not move.
std::string impossible(const Measured& m, const Table& table) {
  const double moved_ms = (m.timing.bytes - table.l2_mb * 1e6) / table.peak_tbps * 1e-9;
  if (moved_ms > m.median_ms)
    return fmt::format("counts {:.4g} MB in {:.4f} ms, more than the memory's {} TB/s: its byte count is wrong",
                       m.timing.bytes * 1e-6, m.median_ms, table.peak_tbps);
  if (m.timing.flops / table.float32_tflops * 1e-9 > m.median_ms)
    return fmt::format("counts {:.4g} GFLOP in {:.4f} ms, more than {} TFLOP/s: its flop count is wrong",
                       m.timing.flops * 1e-9, m.median_ms, table.float32_tflops);
  return "";
}

double gbps(const Measured& m) { return m.timing.bytes / m.median_ms * 1e-6; }
double tflops(const Measured& m) { return m.timing.flops / m.median_ms * 1e-9; }

std::string peer_number(const json& peer, const char* name) {
  return peer.is_object() && peer.contains(name) ? fmt::format("{:.4g}", peer.at(name).get<double>()) : "-";
}

}  // namespace

double quantile(std::vector<double> values, double share) {
  if (values.empty()) throw InputError("quantile", "of no values");
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

Measured measure(const Row& row, const Table& table, Subject& subject, Subject& reference, int repetitions) {
  const OpCall call = call_of(row);
  Measured measured;
  measured.row = &row;
  measured.gate = gate(row, call, subject, reference);
  if (!measured.gate.passed) return measured;
  measured.timing = subject.time_op(call, repetitions);
  std::vector<double> times_ms;
  for (const double time_us : measured.timing.time_us) times_ms.push_back(time_us / 1000);
  measured.median_ms = quantile(times_ms, 0.5);
  measured.p10_ms = quantile(times_ms, 0.1);
  measured.p90_ms = quantile(times_ms, 0.9);
  measured.roof_ms =
      std::max(measured.timing.bytes / table.copy_tbps * 1e-9, measured.timing.flops / table.float32_tflops * 1e-9);
  if (const std::string problem = impossible(measured, table); !problem.empty())
    measured.gate = {.passed = false, .used = measured.gate.used, .text = problem};
  return measured;
}

std::vector<std::string> header_lines(const Capabilities& capabilities, const Table& table, int repetitions) {
  return {fmt::format("# {} . {} . float32 . {} launches a row, L2 flushed before each", capabilities.device,
                      fmt::join(capabilities.versions, " . "), repetitions),
          fmt::format("# roof: {} TB/s copied, {} TFLOP/s float32; limit, peer, aim: {}", table.copy_tbps,
                      table.float32_tflops, table.source),
          fmt::format("{:30} {:12} {:>9} {:>9} {:>9} {:>8} {:>8} {:>6}  {:>8} {:>7} {:>7} {:9} {}", "shape", "gate",
                      "median ms", "p10", "p90", "GB/s", "TFLOP/s", "roof", "limit ms", "peer", "aim", "(dtype)",
                      "kernels")};
}

std::vector<std::string> lines(const Measured& m) {
  const std::string shape = m.row->point.text(op_spec(m.row->op));
  if (!m.gate.passed)
    return {fmt::format("{:30} FAIL  {}", m.row->id, m.gate.text), fmt::format("{:30} at {}", "", shape)};
  const std::string flops = m.timing.flops > 0 ? fmt::format("{:.1f}", tflops(m)) : "-";
  const json& peer = m.row->peer;
  return {fmt::format("{:30} {:12} {:9.4f} {:9.4f} {:9.4f} {:8.0f} {:>8} {:5.0f}%  {:>8} {:>7} {:>7} {:9} {}",
                      m.row->id, m.gate.text, m.median_ms, m.p10_ms, m.p90_ms, gbps(m), flops, 100 * m.roof_fraction(),
                      peer_number(peer, "limit_ms"), peer_number(peer, "best_ms"), peer_number(peer, "target_ms"),
                      peer.is_object() ? peer.at("dtype").get<std::string>() : std::string("-"),
                      fmt::join(m.timing.kernels, " "))};
}

json to_json(const Measured& m, const Capabilities& capabilities) {
  const auto timed = [&m](double value) { return m.gate.passed ? json(value) : json(); };
  json row = {{"schema", "assay.bench/1"},
              {"id", m.row->id},
              {"op", m.row->op},
              {"form", m.row->form},
              {"dtype", "float32"},
              {"shape", m.row->point.text(op_spec(m.row->op))},
              {"device", capabilities.device},
              {"versions", capabilities.versions},
              {"gate", m.gate.passed ? "PASS" : "FAIL"},
              {"gate_text", m.gate.text},
              {"used", std::isfinite(m.gate.used) ? json(m.gate.used) : json("Infinity")},
              {"kernels", m.timing.kernels},
              {"repetitions", m.timing.time_us.size()},
              {"median_ms", timed(m.median_ms)},
              {"p10_ms", timed(m.p10_ms)},
              {"p90_ms", timed(m.p90_ms)},
              {"bytes", timed(m.timing.bytes)},
              {"flops", timed(m.timing.flops)},
              {"gbps", timed(m.gate.passed ? gbps(m) : 0)},
              {"tflops", timed(m.gate.passed ? tflops(m) : 0)},
              {"roof_ms", timed(m.roof_ms)},
              {"roof_fraction", timed(m.gate.passed ? m.roof_fraction() : 0)}};
  if (m.row->peer.is_object()) row["peer"] = m.row->peer;
  return row;
}

}  // namespace assay::bench

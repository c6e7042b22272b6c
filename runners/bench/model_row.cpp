#include "runners/bench/model_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"
#include "runners/bench/measure.hpp"
#include "runners/execute.hpp"

namespace assay::bench {

using nlohmann::json;

namespace {

constexpr ModelCall kCalls[] = {
    {"prefill_1", 1, 0, 2048}, {"prefill_8", 8, 0, 2048}, {"decode_1", 1, 512, 1},
    {"decode_8", 8, 512, 1},   {"decode_64", 64, 512, 1},
};
constexpr int kWarmUp = 5;
constexpr int kPromptRepetitions = 10;  // at most: they are long, and vary little

Call tokens_of(int64_t rows, int64_t first, int64_t columns, int64_t vocabulary) {
  std::vector<int64_t> tokens(static_cast<size_t>(rows * columns));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      tokens[static_cast<size_t>(row * columns + column)] = (7919 * (first + column) + 104729 * row + 13) % vocabulary;
  Call call;
  call.tokens = HostTensor({rows, columns}, tokens);
  call.capture = false;
  return call;
}

double timed_ms(Session& session, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  session.forward(call);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// Prompts, each as the first call of its session.
void time_prompts(const ModelCall& call, Session& session, int64_t vocabulary, int repetitions,
                  ModelMeasured& measured) {
  const Call prompt = tokens_of(call.rows, 0, call.columns, vocabulary);
  for (int i = 0; i < 2 + std::min(repetitions, kPromptRepetitions); ++i) {
    session.reset();
    const double time_ms = timed_ms(session, prompt);
    if (i >= 2) measured.times_ms.push_back(time_ms);
  }
}

void time_steps(const ModelCall& call, Session& session, int64_t vocabulary, int repetitions, ModelMeasured& measured) {
  session.forward(tokens_of(call.rows, 0, call.past, vocabulary));
  for (int i = 0; i < kWarmUp + repetitions; ++i) {
    const double time_ms = timed_ms(session, tokens_of(call.rows, call.past + i, call.columns, vocabulary));
    if (i >= kWarmUp) measured.times_ms.push_back(time_ms);
  }
}

bool has(const std::vector<CacheKind>& kinds, CacheKind kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

}  // namespace

std::span<const ModelCall> model_calls() { return kCalls; }

ModelGate gate(const Corpus& corpus, const ModelConfig& config, Subject& subject, GoldenStore& goldens) {
  Execution execution(subject, goldens);
  int64_t passed = 0;
  for (const Case& test_case : corpus.cases) {
    if (test_case.model != config.model || test_case.config != config.name || test_case.dtype != "float32") continue;
    const Verdict verdict = execution.run(test_case, config);
    if (verdict.status != Status::kPass && verdict.status != Status::kMarginal)
      return {false, fmt::format("{} is {}{}{}; assay run {} --tier slow", test_case.id, status_name(verdict.status),
                                 verdict.reason.empty() ? "" : ": ", verdict.reason, test_case.id)};
    ++passed;
  }
  if (passed == 0) return {false, config.id() + " has no case to be gated by"};
  return {true, fmt::format("{} cases", passed)};
}

ModelMeasured measure(const ModelCall& call, const ModelConfig& config, Model& model, const Capabilities& capabilities,
                      const Table& table, int repetitions) {
  ModelMeasured measured;
  measured.call = &call;
  measured.id = fmt::format("{}.{}", config.id(), call.name);
  measured.cost = model_cost(config, call.rows, call.columns, call.past);
  const int64_t vocabulary = model_spec(config.model).vocabulary(config);
  try {
    SessionOptions options;
    options.rows = call.rows;
    if (call.past > 0 && has(capabilities.caches, CacheKind::kStatic)) {
      options.cache = CacheKind::kStatic;
      options.limit = call.past + kWarmUp + repetitions * call.columns;
    }
    const auto session = model.start(options);
    (call.past == 0 ? time_prompts : time_steps)(call, *session, vocabulary, repetitions, measured);
    measured.kernels = session->kernels();
  } catch (const Error& error) {
    measured.problem = error.what();
    return measured;
  }
  measured.median_ms = quantile(measured.times_ms, 0.5);
  measured.p10_ms = quantile(measured.times_ms, 0.1);
  measured.p90_ms = quantile(measured.times_ms, 0.9);
  if (capabilities.is_accelerated)  // the roofs are a GPU's
    measured.roof_ms =
        std::max(measured.cost.bytes() / table.copy_tbps * 1e-9, measured.cost.flops / table.float32_tflops * 1e-9);
  return measured;
}

std::vector<std::string> model_header_lines(const Capabilities& capabilities, const Table& table, int repetitions) {
  return {fmt::format("# {} . {} . float32 . {} steps or up to {} prompts a row, host's clock around forward()",
                      capabilities.device, fmt::join(capabilities.versions, " . "), repetitions, kPromptRepetitions),
          fmt::format("# roof: {} TB/s copied, {} TFLOP/s float32, of the weights and states that a call must touch",
                      table.copy_tbps, table.float32_tflops),
          fmt::format("{:32} {:>5} {:>5} {:>7} {:>10} {:>10} {:>10} {:>9} {:>8} {:>8} {:>6}", "call", "rows", "past",
                      "columns", "median ms", "p10", "p90", "tokens/s", "GB/s", "TFLOP/s", "roof")};
}

std::string line(const ModelMeasured& m) {
  if (!m.problem.empty()) return fmt::format("{:32} FAIL  {}", m.id, m.problem);
  return fmt::format("{:32} {:5} {:5} {:7} {:10.4f} {:10.4f} {:10.4f} {:9.0f} {:8.0f} {:8.2f} {:>6}", m.id,
                     m.call->rows, m.call->past, m.call->columns, m.median_ms, m.p10_ms, m.p90_ms, m.tokens_per_s(),
                     m.cost.bytes() / m.median_ms * 1e-6, m.cost.flops / m.median_ms * 1e-9,
                     m.roof_ms > 0 ? fmt::format("{:.0f}%", 100 * m.roof_fraction()) : "-");
}

json to_json(const ModelMeasured& m, const ModelGate& gate, const Capabilities& capabilities) {
  const bool is_timed = gate.passed && m.problem.empty();
  const auto timed = [&](double value) { return is_timed ? json(value) : json(); };
  return {{"schema", "assay.bench_model/1"},
          {"id", m.id},
          {"rows", m.call->rows},
          {"past", m.call->past},
          {"columns", m.call->columns},
          {"dtype", "float32"},
          {"device", capabilities.device},
          {"versions", capabilities.versions},
          {"gate", gate.passed ? "PASS" : "FAIL"},
          {"gate_text", gate.passed ? (m.problem.empty() ? gate.text : m.problem) : gate.text},
          {"kernels", m.kernels},
          {"repetitions", m.times_ms.size()},
          {"median_ms", timed(m.median_ms)},
          {"p10_ms", timed(m.p10_ms)},
          {"p90_ms", timed(m.p90_ms)},
          {"tokens_per_s", timed(is_timed ? m.tokens_per_s() : 0)},
          {"weight_bytes", m.cost.weight_bytes},
          {"state_bytes", m.cost.state_bytes},
          {"flops", m.cost.flops},
          {"roof_ms", m.roof_ms > 0 ? timed(m.roof_ms) : json()},
          {"roof_fraction", m.roof_ms > 0 ? timed(m.roof_fraction()) : json()}};
}

std::vector<std::string> named_models(const std::vector<std::string>& names, std::vector<std::string>& rest) {
  std::vector<std::string> models;
  for (const std::string& name : names) {
    const bool is_term = name.starts_with("model:");
    const std::string pattern = is_term ? name.substr(6) : name;
    bool is_model = false;
    for (const ModelSpec& spec : model_specs()) {
      if (is_term ? !glob_matches(pattern, spec.name) : pattern != spec.name) continue;
      is_model = true;
      if (std::find(models.begin(), models.end(), spec.name) == models.end()) models.emplace_back(spec.name);
    }
    if (is_term && !is_model) model_spec(pattern);  // throws with the nearest names
    if (!is_model) rest.push_back(name);
  }
  return models;
}

}  // namespace assay::bench

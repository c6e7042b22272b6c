// ModelRow: forward calls of a whole model, timed from outside as a program that uses the subject would see them: the
// host's clock around forward(), tokens taken there and logits brought back, nothing else asked for.
//
// The models are the families at released width with few layers (cases/models/<family>/real.config.json), so that a
// call is one of every kind of layer at its real size. Gate: the float32 cases of that config pass.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/subject.hpp"
#include "runners/bench/model_cost.hpp"
#include "runners/bench/shapes.hpp"
#include "runners/goldens.hpp"

namespace assay::bench {

inline constexpr std::string_view kModelConfig = "real";

struct ModelCall {
  std::string_view name;
  int64_t rows;
  int64_t past;     // columns already in the cache; 0: a prompt
  int64_t columns;  // new ones
};
std::span<const ModelCall> model_calls();

struct ModelGate {
  bool passed = false;
  std::string text;  // "2 cases"; on failure the case, its status and reason, and how to repeat it
};
ModelGate gate(const Corpus& corpus, const ModelConfig& config, Subject& subject, GoldenStore& goldens);

struct ModelMeasured {
  const ModelCall* call = nullptr;
  std::string id;       // "mamba2/real.decode_8"
  std::string problem;  // why there is no time; empty if there is one
  ModelCost cost;
  std::vector<double> times_ms;
  double median_ms = 0, p10_ms = 0, p90_ms = 0;
  double roof_ms = 0;  // the longer of bytes over the copy rate and flops over the float32 rate; 0 without a GPU
  std::vector<std::string> kernels;

  double roof_fraction() const { return roof_ms / median_ms; }
  double tokens_per_s() const { return 1e3 * static_cast<double>(call->rows * call->columns) / median_ms; }
};

// Steps run through a static cache where the subject has one. What the subject refuses is the row's problem.
ModelMeasured measure(const ModelCall& call, const ModelConfig& config, Model& model, const Capabilities& capabilities,
                      const Table& table, int repetitions);

std::vector<std::string> model_header_lines(const Capabilities& capabilities, const Table& table, int repetitions);
std::string line(const ModelMeasured& measured);
nlohmann::json to_json(const ModelMeasured& measured, const ModelGate& gate,
                       const Capabilities& capabilities);  // schema bench_model.schema.json

// The families that `names` are about ("mamba2", "model:zamba*"); the other names go to `rest`.
std::vector<std::string> named_models(const std::vector<std::string>& names, std::vector<std::string>& rest);

}  // namespace assay::bench

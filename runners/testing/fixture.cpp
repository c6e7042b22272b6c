#include "runners/testing/fixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "runners/leg_plan.hpp"
#include "runners/leg_run.hpp"
#include "runners/subjects.hpp"

namespace assay::testing {

namespace fs = std::filesystem;

namespace {

constexpr const char* kConfig = R"({"schema": "assay.config/1", "model": "mamba", "why": "For tests of the runner.",
  "config": {"model_type": "mamba", "vocab_size": 24, "hidden_size": 12, "state_size": 3, "num_hidden_layers": 2,
             "layer_norm_epsilon": 1e-05, "expand": 2, "conv_kernel": 4, "use_bias": false, "use_conv_bias": true,
             "hidden_act": "silu", "time_step_rank": 2, "tie_word_embeddings": true},
  "weights": {"kind": "synthetic", "seed": 5}, "profile": {},
  "inputs": {"a": {"tokens": [3, 9, 14, 2, 20, 7, 11, 1, 5]}, "b": {"tokens": [8, 4, 16, 21, 0, 13, 6, 19, 10]},
             "one": {"tokens": [17]}, "greedy": {"tokens": [2, 12, 22], "greedy": 12},
             "logits": {"tokens": [8, 4, 16, 21, 0, 13, 6, 19, 10], "record": "logits"},
             "beams": {"tokens": [6, 15, 1], "beams": {"width": 2, "steps": 4}, "record": "logits"},
             "beams_late": {"tokens": [11, 3], "beams": {"width": 2, "steps": 4}, "record": "logits"}},
  "state_cuts": [1, 4, 9]})";

std::string case_text(const std::string& legs, const std::string& agree) {
  return fmt::format(R"({{"schema": "assay.case/1", "config": "small", "tier": "smoke", "dtype": "float32",
    "why": "For tests of the runner.", "legs": {}, "agree": {}}})",
                     legs, agree);
}

golden::Record record(const std::string& name, Shape row, int64_t positions, const HostTensor& tensor) {
  golden::Record result;
  result.name = name;
  result.shape = std::move(row);
  result.positions = positions;
  const std::span<const float> values = tensor.values<float>();
  result.values.assign(values.begin(), values.end());
  const size_t width = result.values.size() / static_cast<size_t>(positions);
  for (const float value : result.values) result.scale = std::max(result.scale, std::abs(value));
  for (size_t p = 0; p < static_cast<size_t>(positions); ++p) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += std::pow(result.values[p * width + i], 2);
    result.norm.push_back(static_cast<float>(std::sqrt(squares)));
  }
  result.floor.assign(static_cast<size_t>(positions), 1e-6F * result.scale);
  result.norm_floor = result.floor;
  return result;
}

Shape tail(const Shape& shape, ptrdiff_t from) { return Shape(shape.begin() + from, shape.end()); }

Trace forward(Session& session, const std::vector<int64_t>& tokens) {
  Call call;
  call.tokens = HostTensor({1, static_cast<int64_t>(tokens.size())}, tokens);
  return session.forward(call);
}

// All sequences run whole at every step, all candidates sorted.
golden::BeamRecord search(Model& model, const std::vector<int64_t>& prompt, const Input::Beams& beams) {
  using Candidate = std::pair<double, std::vector<int64_t>>;
  std::vector<Candidate> kept{{0, {}}};
  golden::BeamRecord record;
  for (int64_t step = 0; step < beams.steps; ++step) {
    std::vector<Candidate> candidates;
    for (const auto& [sum, sequence] : kept) {
      std::vector<int64_t> tokens = prompt;
      tokens.insert(tokens.end(), sequence.begin(), sequence.end());
      const Trace trace = forward(*model.start(SessionOptions()), tokens);
      const HostTensor& logits = trace.probes.back().value;
      const int64_t vocabulary = logits.shape()[2], begin = logits.count() - vocabulary;
      double total = 0;
      for (int64_t v = 0; v < vocabulary; ++v) total += std::exp(logits.at(begin + v));
      for (int64_t v = 0; v < vocabulary; ++v) {
        candidates.emplace_back(sum + logits.at(begin + v) - std::log(total), sequence);
        candidates.back().second.push_back(v);
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    golden::BeamStep found;
    for (size_t i = 0; i <= static_cast<size_t>(beams.width); ++i) {
      found.log_probs.push_back(static_cast<float>(candidates[i].first));
      if (i == static_cast<size_t>(beams.width)) break;
      const std::vector<int64_t>& sequence = candidates[i].second;
      found.tokens.push_back(sequence.back());
      for (size_t k = 0; k < kept.size(); ++k)
        if (std::equal(kept[k].second.begin(), kept[k].second.end(), sequence.begin()))
          found.sources.push_back(static_cast<int64_t>(k));
    }
    candidates.resize(static_cast<size_t>(beams.width));
    kept = std::move(candidates);
    record.steps.push_back(std::move(found));
  }
  for (const auto& [sum, sequence] : kept) {
    record.sequences.push_back(sequence);
    record.scores.push_back(static_cast<float>(sum / static_cast<double>(beams.steps)));
  }
  return record;
}

}  // namespace

Subject& tiny_subject() {
  static const OpenedSubject opened = open_subject(find_subject(ASSAY_TINY_SUBJECT, ASSAY_EXECUTABLE));
  return *opened.subject;
}

ModelConfig small_config() {
  return parse_config(parse_json(kConfig, "small.config.json"), "cases/models/mamba/small.config.json");
}

Case small_case(const std::string& legs, const std::string& agree) {
  return parse_case(parse_json(case_text(legs, agree), "logits.test.json"), "cases/models/mamba/logits.test.json",
                    "mamba/logits.test");
}

golden::Golden recorded(Subject& subject, const ModelConfig& config, const std::string& input) {
  const std::shared_ptr<const WeightSource> weights = open_weights(config);
  const std::unique_ptr<Model> model = subject.load(config, weights, LoadOptions());
  golden::Golden golden;
  golden.model = config.model;
  golden.config = config.name;
  golden.input = input;
  golden.kind = "f32";
  golden.config_digest = config.digest;
  for (const std::string& name : weights->names())
    golden.weight_digests[name] = sha256(weights->read(name).bytes()).substr(0, 16);
  golden.original = {{"package", "transformers"}, {"version", "5.24.0"}};
  golden.prompt = golden.tokens = config.input(input).tokens;
  SessionOptions options;
  for (int64_t i = 0; i < config.input(input).greedy; ++i) {
    const Trace trace = forward(*model->start(options), golden.tokens);
    golden.tokens.push_back(greedy_tokens(trace.probes.back().value)[0]);
  }
  const Trace trace = forward(*model->start(options), golden.tokens);
  const auto length = static_cast<int64_t>(golden.tokens.size());
  golden.is_logits_only = config.input(input).is_logits_only;
  for (const NamedTensor& probe : trace.probes)
    if (!golden.is_logits_only || probe.name == "logits")
      golden.probes.push_back(record(probe.name, tail(probe.value.shape(), 2), length, probe.value));
  const HostTensor& logits = trace.probes.back().value;
  const int64_t vocabulary = logits.shape()[2];
  for (int64_t p = 0; p < length; ++p) {
    std::vector<float> row(logits.values<float>().begin() + p * vocabulary,
                           logits.values<float>().begin() + (p + 1) * vocabulary);
    std::partial_sort(row.begin(), row.begin() + 2, row.end(), std::greater<>());
    golden.gap.push_back(row[0] - row[1]);
  }
  if (config.input(input).beams) golden.beams = search(*model, golden.prompt, *config.input(input).beams);
  for (const int64_t cut : config.cuts_of(config.input(input))) {
    const std::unique_ptr<Session> session = model->start(options);
    forward(*session, std::vector<int64_t>(golden.tokens.begin(), golden.tokens.begin() + cut));
    golden::StateRecord states{cut, {}};
    for (const NamedTensor& state : session->states())
      states.states.push_back(record(state.name, tail(state.value.shape(), 1), 1, state.value));
    golden.states.push_back(std::move(states));
  }
  return golden;
}

void write_checkout(const fs::path& root) {
  const fs::path cases = root / "cases" / "models" / "mamba", goldens = root / "golden" / "models" / "mamba";
  fs::create_directories(cases);
  fs::create_directories(goldens);
  write_file(cases / "small.config.json", kConfig);
  const auto add = [&cases](const std::string& name, const std::string& legs, const std::string& agree = "[]") {
    write_file(cases / (name + ".json"), case_text(legs, agree));
  };
  add("logits.a", R"([{"name": "whole", "rows": [{"input": "a"}]}])");
  add("logits.b", R"([{"name": "whole", "rows": [{"input": "b"}]}])");
  add("cache.two", R"([{"name": "both", "rows": [{"input": "a"}, {"input": "b"}]}])");
  add("cache.split",
      R"([{"name": "whole", "rows": [{"input": "a"}]},
          {"name": "split", "rows": [{"input": "a"}], "cache": "dynamic", "calls": [4, "each"]}])",
      R"([["whole", "split"]])");
  const ModelConfig config = read_config(cases / "small.config.json");
  for (const char* input : {"a", "b"}) {
    const golden::Golden golden = recorded(tiny_subject(), config, input);
    write_file(golden::golden_file(root, golden.model, golden.config, golden.input, golden.kind),
               golden::format(golden));
  }
}

}  // namespace assay::testing

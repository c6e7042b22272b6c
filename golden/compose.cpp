#include "golden/compose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "cases/spec/error.hpp"
#include "golden/beams.hpp"
#include "golden/kinds.hpp"
#include "golden/sample.hpp"

namespace assay::golden {
namespace {

// Kept of a state in all, and of each of its heads at least; logits up to which all are kept.
constexpr int64_t kState = 16, kHeadOfState = 2, kWholeLogits = 64;

HostTensor read_as(const WeightSource& tensors, const std::string& name, DType dtype, int64_t count) {
  if (!tensors.has(name)) throw HarnessError(name, "the original's run did not write this tensor");
  HostTensor tensor = tensors.read(name);
  if (tensor.dtype() != dtype || tensor.count() != count)
    throw HarnessError(
        name, fmt::format("the original's run wrote {} {}, expected {} elements of {}", dtype_name(tensor.dtype()),
                          to_string(tensor.shape()), count, dtype_name(dtype)));
  return tensor;
}

Runs runs_of(const WeightSource& tensors, const std::string& prefix, const std::string& name, int64_t count,
             int64_t nudges) {
  Runs runs{read_as(tensors, prefix + "f32/" + name, DType::kF32, count),
            read_as(tensors, prefix + "f64/" + name, DType::kF64, count),
            {}};
  for (int64_t k = 1; k <= nudges; ++k)
    runs.nudged.push_back(read_as(tensors, fmt::format("{}f32.{}/{}", prefix, k, name), DType::kF32, count));
  return runs;
}

std::vector<int64_t> sample_of(const ProbeSpec& probe, const Shape& row, uint64_t seed, bool is_logits_only) {
  int64_t size = sample_size(row);
  if (probe.is_state)
    size = std::max(kHeadOfState, (kState + probe.state_heads - 1) / probe.state_heads);
  else if (probe.name == "logits")
    size = element_count(row) <= kWholeLogits && !is_logits_only ? element_count(row) : kState;
  return sample_indices(probe.name, seed, row, size);
}

// A state is kept head by head: its leading dimension becomes the positions.
Record compose_state(const ProbeSpec& probe, const std::string& prefix, uint64_t seed, const WeightSource& tensors,
                     int64_t nudges) {
  const int64_t heads = probe.state_heads, count = element_count(probe.shape);
  Shape row = probe.shape;
  if (heads != 1) {
    if (row.empty() || row.front() != heads)
      throw HarnessError(probe.name, fmt::format("{} heads do not lead its shape {}", heads, to_string(probe.shape)));
    row.erase(row.begin());
  }
  return compose_record(probe.name, row, heads, sample_of(probe, row, seed, false),
                        runs_of(tensors, prefix, probe.name, count, nudges));
}

std::vector<float> gaps(const HostTensor& logits, int64_t positions) {
  const auto values = logits.values<float>();
  const int64_t width = logits.count() / std::max<int64_t>(positions, 1);
  std::vector<float> result;
  for (int64_t p = 0; p < positions; ++p) {
    float best = -INFINITY, second = -INFINITY;
    for (float value : values.subspan(p * width, width)) {
      if (value > best)
        second = std::exchange(best, value);
      else
        second = std::max(second, value);
    }
    result.push_back(best - second);
  }
  return result;
}

}  // namespace

float round_up(double value) {
  if (!(value > 0)) return 0;
  // Digits by text, so that the float is the one nearest to a two-digit decimal and prints as that.
  int exponent = static_cast<int>(std::floor(std::log10(value))) - 1;
  double digits = std::ceil(value * std::pow(10.0, -exponent) * (1 - 1e-13));
  const std::string text = fmt::format("{:.0f}e{}", digits, exponent);
  float rounded = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rounded);
  // Below the smallest float32 a floor is still not zero.
  return error == std::errc() && rounded > 0 ? rounded : std::numeric_limits<float>::min();
}

Record compose_record(const std::string& name, const Shape& row, int64_t positions, std::vector<int64_t> sample,
                      const Runs& runs, bool is_sparse) {
  const int64_t width = element_count(row);
  const HostTensor& narrow = runs.narrow;
  std::vector<const HostTensor*> others = {&runs.wide};
  for (const HostTensor& nudged : runs.nudged) others.push_back(&nudged);
  for (const HostTensor* run : others)
    if (narrow.count() != positions * width || run->count() != narrow.count())
      throw HarnessError(name, fmt::format("{} positions of {} do not fit {} and {}", positions, to_string(row),
                                           to_string(narrow.shape()), to_string(run->shape())));
  const auto single = narrow.values<float>();
  Record record{.name = name, .shape = row, .positions = positions, .sample = std::move(sample)};
  for (int64_t p = 0; p < positions; ++p) {
    const int64_t begin = p * width;
    double floor = 0, norm_floor = 0, squares = 0;
    for (int64_t i = begin; i < begin + width; ++i) {
      squares += double{single[i]} * single[i];
      record.scale = std::max(record.scale, std::abs(single[i]));
    }
    const double norm = std::sqrt(squares);
    for (const HostTensor* run : others) {
      double other_squares = 0;
      for (int64_t i = begin; i < begin + width; ++i) {
        const double value = run->at(i);
        if (!std::isfinite(single[i]) || !std::isfinite(value))
          throw HarnessError(
              name, fmt::format("the original computed {} at position {}, element {}", single[i], p, i - begin),
              "choose another seed or smaller weights for this config");
        if (is_sparse && (single[i] == 0) != (value == 0) && std::abs(value - double{single[i]}) > 1e-3)
          throw HarnessError(name,
                             fmt::format("rounding decides the choice at position {}, element {}: {} in one run and {} "
                                         "in another",
                                         p, i - begin, single[i], value),
                             "choose another seed for this config");
        floor = std::max(floor, std::abs(double{single[i]} - value));
        other_squares += value * value;
      }
      norm_floor = std::max(norm_floor, std::abs(norm - std::sqrt(other_squares)));
    }
    if (record.sample.empty())
      record.values.insert(record.values.end(), single.begin() + begin, single.begin() + begin + width);
    else
      for (int64_t index : record.sample) record.values.push_back(single[begin + index]);
    record.norm.push_back(static_cast<float>(norm));
    record.floor.push_back(round_up(floor));
    record.norm_floor.push_back(round_up(norm_floor));
  }
  return record;
}

Golden compose(const ModelConfig& config, const std::string& input, const std::string& kind,
               const std::vector<ProbeSpec>& probes, const WeightSource& tensors, const nlohmann::json& run,
               const nlohmann::json& manifest) {
  Golden golden{.model = config.model, .config = config.name, .input = input, .kind = kind};
  if (run.value("kind", "f32") != kind)
    throw HarnessError(golden.id(), "the original ran as kind " + run.value("kind", "f32"));
  golden.config_digest = config.digest;
  golden.weight_digests = compose_digests(kind, run, manifest);
  golden.original = run.at("original");
  const nlohmann::json& done = run.at("inputs").at(input);
  golden.prompt = done.at("prompt").get<std::vector<int64_t>>();
  golden.tokens = done.at("tokens").get<std::vector<int64_t>>();
  const Input& wanted = config.input(input);
  if (golden.prompt != wanted.tokens || golden.tokens.size() != wanted.tokens.size() + wanted.greedy ||
      !std::equal(golden.prompt.begin(), golden.prompt.end(), golden.tokens.begin()))
    throw HarnessError(golden.id(), "the original ran other tokens than the config's input");

  const uint64_t seed = config.weights.seed;
  const int64_t nudges = run.value("nudges", int64_t{0});
  const auto length = static_cast<int64_t>(golden.tokens.size());
  for (const ProbeSpec& probe : probes) {
    if (probe.is_state || (wanted.is_logits_only && probe.name != "logits")) continue;
    const int64_t count = length * element_count(probe.shape);
    const Runs runs = runs_of(tensors, "", probe.name, count, nudges);
    // A squared ReLU is sparse too, but continuous: what is zero in one run is then next to nothing in another.
    golden.probes.push_back(compose_record(probe.name, probe.shape, length,
                                           sample_of(probe, probe.shape, seed, wanted.is_logits_only), runs,
                                           probe.is_sparse));
    golden.probes.back().is_sparse = probe.is_sparse;
    if (probe.name == "logits") golden.gap = gaps(runs.narrow, length);
  }
  if (golden.probes.empty() || golden.probes.back().name != "logits")
    throw HarnessError(golden.id(), "the probe table does not end with logits");
  golden.is_logits_only = wanted.is_logits_only;
  if (done.contains("beams")) golden.beams = compose_beams(golden.id(), done.at("beams"));
  if (beams_of(golden) != wanted.beams) throw HarnessError(golden.id(), "the original searched with other beams");
  if (done.at("cuts") != config.cuts_of(wanted))
    throw HarnessError(golden.id(), "the original ran to other state cuts");
  for (const int64_t cut : done.at("cuts").get<std::vector<int64_t>>()) {
    StateRecord states{.cut = cut};
    for (const ProbeSpec& probe : probes)
      if (probe.is_state && probe.follows.empty())
        states.states.push_back(compose_state(probe, fmt::format("state/{}/", cut), seed, tensors, nudges));
    golden.states.push_back(std::move(states));
  }
  compose_kind(tensors, run, done, manifest, golden);
  return golden;
}

}  // namespace assay::golden

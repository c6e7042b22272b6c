#include "golden/current_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "cases/spec/digest.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "golden/kinds.hpp"

namespace assay::golden {

namespace {

bool is_synthetic(const ModelConfig& config) { return config.weights.kind == WeightsRecipe::Kind::kSynthetic; }

// The low bits of a float32's significand away, ties to even; a carry runs into the exponent, as it should.
float without_low_bits(float value, int bits) {
  const auto word = std::bit_cast<uint32_t>(value);
  const uint32_t half = (1U << (bits - 1)) - 1 + ((word >> bits) & 1U);
  return std::bit_cast<float>((word + half) & ~((1U << bits) - 1));
}

float to_bfloat16(float value) { return without_low_bits(value, 16); }

float to_float16(float value) {
  if (std::abs(value) < 0x1p-14F) return std::nearbyint(value * 0x1p24F) * 0x1p-24F;  // subnormal: multiples of 2^-24
  const float rounded = without_low_bits(value, 13);
  return std::abs(rounded) <= 65504 ? rounded : std::copysign(std::numeric_limits<float>::infinity(), value);
}

std::vector<float> block_scales(std::span<const float> values) {
  std::vector<float> scales((values.size() + kScaledTogether - 1) / kScaledTogether);
  for (size_t i = 0; i < values.size(); ++i) {
    float& scale = scales[i / kScaledTogether];
    scale = std::max(scale, std::abs(values[i]));
  }
  return scales;
}

std::string short_digest(std::span<const std::byte> bytes) { return sha256(bytes).substr(0, 16); }

}  // namespace

std::string CurrentWeights::left_out(const ModelConfig& config) const {
  int64_t elements = 0;
  for (const WeightSpec& spec : model_spec(config.model).weights(config)) elements += element_count(spec.shape);
  const int64_t most = is_synthetic(config) ? kMostDrawnElements : most_checkpoint_elements_;
  if (elements > most) return fmt::format("{} elements, and at most {} are looked at here", elements, most);
  std::error_code error;
  if (!is_synthetic(config) && !std::filesystem::exists(config.weights.directory, error))
    return fmt::format("there is no folder '{}'", config.weights.directory.string());
  return "";
}

std::optional<CurrentWeights::Expected> CurrentWeights::expected_of(const Golden& golden, const std::string& name) {
  const std::string& recorded = golden.weight_digests.at(name);
  if (golden.quantization) {
    const auto weight = golden.quantization->weights.find(name);
    if (weight != golden.quantization->weights.end()) {
      if (weight->second.absmax.empty()) return std::nullopt;
      return Expected{Form::kBlockScales, short_digest(std::as_bytes(std::span(weight->second.absmax)))};
    }
  }
  const Kind* kind = find_kind(golden.kind);
  const bool is_rounded = kind && kind->is_rounded && std::ranges::count(golden.float32_weights, name) == 0;
  if (!is_rounded) return Expected{Form::kFloat32, recorded};
  return Expected{golden.kind == "f16" ? Form::kFloat16 : Form::kBFloat16, recorded};
}

std::string CurrentWeights::digest(HostTensor weight, Form form) {
  const std::span<float> values = weight.values<float>();
  if (form == Form::kBlockScales) {
    const std::vector<float> scales = block_scales(values);
    return short_digest(std::as_bytes(std::span(scales)));
  }
  if (form == Form::kFloat16) std::ranges::transform(values, values.begin(), to_float16);
  if (form == Form::kBFloat16) std::ranges::transform(values, values.begin(), to_bfloat16);
  return short_digest(weight.bytes());
}

std::string CurrentWeights::stale_reason(const Golden& golden, const ModelConfig& config) {
  if (!left_out(config).empty()) return "";
  const std::vector<WeightSpec> table = model_spec(config.model).weights(config);
  for (const auto& [name, digest] : golden.weight_digests)
    if (std::ranges::none_of(table, [&name](const WeightSpec& spec) { return spec.name == name; }))
      return "recorded with the weight " + name + ", which the config does not have";
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const WeightSource> source;
  for (const WeightSpec& spec : table) {
    if (!golden.weight_digests.contains(spec.name)) return "recorded without the weight " + spec.name;
    const std::optional<Expected> expected = expected_of(golden, spec.name);
    if (!expected) continue;
    std::string& now =
        digests_[fmt::format("{} {} {} {}", config.id(), config.digest, spec.name, static_cast<int>(expected->form))];
    if (now.empty()) {
      if (!source) source = open_weights(config);
      now = digest(read_weight(spec, *source), expected->form);
    }
    if (now == expected->digest) continue;
    if (is_synthetic(config)) return "recorded from other weights (" + spec.name + " is drawn anew)";
    return fmt::format("recorded from another checkpoint ({} of '{}' differs)", spec.name,
                       config.weights.directory.string());
  }
  return "";
}

}  // namespace assay::golden

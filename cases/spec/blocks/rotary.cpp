#include "cases/spec/blocks/rotary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace assay {

namespace {

using nlohmann::json;

// The dictionary of rope settings, under the name that the config gives it.
class Settings {
 public:
  explicit Settings(const FieldReader& read) : read_(read) {
    for (const char* name : {"rope_parameters", "rope_scaling"}) {
      if (!read.has(name)) continue;
      if (!read.value(name).is_object()) read.refuse(name, "an object of rope settings");
      if (!read.value(name).empty() || settings_.empty()) {
        holder_ = name;
        settings_ = read.value(name);
      }
    }
    for (const auto& [name, value] : settings_.items())
      if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
        refuse(fmt::format("no setting named {}", name));
    flag("mrope_interleaved", true);  // read by nobody here: text has three equal rows of positions
  }

  bool has(const char* name) const { return settings_.contains(name) && !settings_.at(name).is_null(); }

  double number(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const json& value = settings_.at(name);
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      refuse(fmt::format("a finite number as its {}", name));
    return value.get<double>();
  }

  double above_zero(const char* name, double otherwise) const {
    const double value = number(name, otherwise);
    if (!(value > 0)) refuse(fmt::format("a number above 0 as its {}", name));
    return value;
  }

  bool flag(const char* name, bool otherwise) const {
    if (!has(name)) return otherwise;
    if (!settings_.at(name).is_boolean()) refuse(fmt::format("true or false as its {}", name));
    return settings_.at(name).get<bool>();
  }

  std::string type() const {
    for (const char* name : {"rope_type", "type"})
      if (has(name)) {
        if (!settings_.at(name).is_string()) refuse(fmt::format("a word as its {}", name));
        return settings_.at(name).get<std::string>();
      }
    return "default";
  }

  [[noreturn]] void refuse(const std::string& expected) const { read_.refuse(holder_, expected); }

 private:
  // mrope_*: of Qwen3.5's images; its text has three equal rows of positions.
  static constexpr std::array<std::string_view, 16> kKnown = {"rope_type",        "type",
                                                              "rope_theta",       "partial_rotary_factor",
                                                              "factor",           "beta_fast",
                                                              "beta_slow",        "truncate",
                                                              "attention_factor", "mscale",
                                                              "mscale_all_dim",   "low_freq_factor",
                                                              "high_freq_factor", "original_max_position_embeddings",
                                                              "mrope_section",    "mrope_interleaved"};

  const FieldReader& read_;
  const char* holder_ = "rope_parameters";
  json settings_ = json::object();
};

// models.md B7: the factor of cos and sin under yarn.
double yarn_attention_factor(const Settings& rope, double factor) {
  if (rope.has("attention_factor")) return rope.above_zero("attention_factor", 1);
  const auto magnitude = [factor](double mscale) { return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0; };
  const double mscale = rope.number("mscale", 0), all = rope.number("mscale_all_dim", 0);
  return mscale != 0 && all != 0 ? magnitude(mscale) / magnitude(all) : magnitude(1);
}

double original_length(const FieldReader& read, const Settings& rope) {
  const char* name = "original_max_position_embeddings";
  if (rope.has(name)) return rope.above_zero(name, 0);
  if (!read.has("max_position_embeddings")) rope.refuse(fmt::format("a number above 0 as its {}", name));
  return static_cast<double>(read.size("max_position_embeddings", 0));
}

}  // namespace

RotaryShape read_rotary(const FieldReader& read, int64_t head_dim, double default_theta, double default_partial,
                        std::optional<double> fixed_partial) {
  const Settings rope(read);
  RotaryShape shape;
  shape.theta = rope.number("rope_theta", read.positive("rope_theta", default_theta));
  if (!(shape.theta > 1)) rope.refuse("a rope_theta above 1");
  const double top_level = read.positive("partial_rotary_factor", default_partial);
  const double partial = rope.number("partial_rotary_factor", fixed_partial.value_or(top_level));
  if (!(partial > 0 && partial <= 1)) rope.refuse("a partial_rotary_factor above 0 and at most 1");
  shape.width = static_cast<int64_t>(static_cast<double>(head_dim) * partial);
  if (shape.width < 2 || shape.width % 2 != 0)
    rope.refuse(
        fmt::format("an even number of rotated lanes, int(head_dim * partial_rotary_factor) = int({} * {}) = {}",
                    head_dim, partial, shape.width));

  const std::string type = rope.type();
  if (type == "default" || type == "mrope") return shape;
  if (type != "linear" && type != "yarn" && type != "llama3") rope.refuse("rope_type default, linear, yarn or llama3");
  if (!rope.has("factor")) rope.refuse(fmt::format("a factor beside rope_type {}", type));
  shape.factor = rope.above_zero("factor", 1);
  if (type == "linear") {
    shape.scaling = RotaryShape::Scaling::kLinear;
    return shape;
  }
  shape.original_length = original_length(read, rope);
  if (type == "llama3") {
    shape.scaling = RotaryShape::Scaling::kLlama3;
    for (const char* name : {"low_freq_factor", "high_freq_factor"})
      if (!rope.has(name)) rope.refuse(fmt::format("a {} beside rope_type llama3", name));
    shape.low_frequency_factor = rope.above_zero("low_freq_factor", 1);
    shape.high_frequency_factor = rope.above_zero("high_freq_factor", 4);
    if (!(shape.low_frequency_factor < shape.high_frequency_factor))
      rope.refuse("a low_freq_factor below its high_freq_factor");
    return shape;
  }
  shape.scaling = RotaryShape::Scaling::kYarn;
  shape.beta_fast = rope.above_zero("beta_fast", 32);
  shape.beta_slow = rope.above_zero("beta_slow", 1);
  if (!(shape.beta_slow <= shape.beta_fast)) rope.refuse("a beta_slow not above its beta_fast");
  shape.truncates = rope.flag("truncate", true);
  shape.attention_factor = yarn_attention_factor(rope, shape.factor);
  return shape;
}

}  // namespace assay

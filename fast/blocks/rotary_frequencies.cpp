#include "fast/blocks/rotary_frequencies.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace assay::fast {

namespace {

// The pair that makes `turns` turns over the original length; pairs before it make more.
double pair_of_turns(const RotaryShape& shape, double turns) {
  const double wavelength = shape.original_length / (turns * 2 * std::numbers::pi);
  return static_cast<double>(shape.width) * std::log(wavelength) / (2 * std::log(shape.theta));
}

void scale_yarn(std::vector<float>& f, const RotaryShape& shape) {
  double first = pair_of_turns(shape, shape.beta_fast), last = pair_of_turns(shape, shape.beta_slow);
  if (shape.truncates) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(shape.width - 1));
  if (first == last) last += 0.001;  // a step instead of a division by zero
  for (size_t i = 0; i < f.size(); ++i) {
    const float along = (static_cast<float>(i) - static_cast<float>(first)) / static_cast<float>(last - first);
    const float slow = std::clamp(along, 0.0f, 1.0f);
    f[i] = f[i] / static_cast<float>(shape.factor) * slow + f[i] * (1.0f - slow);
  }
}

void scale_llama3(std::vector<float>& f, const RotaryShape& shape) {
  const auto original = static_cast<float>(shape.original_length), factor = static_cast<float>(shape.factor);
  const double low = shape.low_frequency_factor, high = shape.high_frequency_factor;
  for (float& each : f) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / each;
    const float share = (original / wavelength - static_cast<float>(low)) / static_cast<float>(high - low);
    const float slow = each / factor;
    if (wavelength > static_cast<float>(shape.original_length / low))
      each = slow;
    else if (!(wavelength < static_cast<float>(shape.original_length / high)))
      each = (1.0f - share) * each / factor + share * each;
  }
}

}  // namespace

std::vector<float> rotary_frequencies(const RotaryShape& shape) {
  std::vector<float> f(static_cast<size_t>(shape.width / 2));
  for (size_t i = 0; i < f.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(shape.width);
    const double power = std::pow(static_cast<double>(static_cast<float>(shape.theta)), static_cast<double>(exponent));
    f[i] = 1.0f / static_cast<float>(power);
  }
  switch (shape.scaling) {
    case RotaryShape::Scaling::kNone:
      break;
    case RotaryShape::Scaling::kLinear:
      for (float& each : f) each /= static_cast<float>(shape.factor);
      break;
    case RotaryShape::Scaling::kYarn:
      scale_yarn(f, shape);
      break;
    case RotaryShape::Scaling::kLlama3:
      scale_llama3(f, shape);
      break;
  }
  return f;
}

}  // namespace assay::fast

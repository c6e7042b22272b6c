#include "reference/ops/rotary.hpp"

#include <algorithm>
#include <cmath>

namespace assay::reference {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Slow pairs (many tokens a turn) get f / factor, fast ones keep f, with a ramp over the pair's index between.
at::Tensor yarn(const at::Tensor& f, const RotaryShape& shape) {
  const auto pair_of_turns = [&](double turns) {
    return static_cast<double>(shape.width) * std::log(shape.original_length / (turns * 2 * kPi)) /
           (2 * std::log(shape.theta));
  };
  double low = pair_of_turns(shape.beta_fast), high = pair_of_turns(shape.beta_slow);
  if (shape.truncates) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(shape.width - 1));
  if (low == high) high += 0.001;
  const at::Tensor ramp = ((at::arange(shape.width / 2, at::kFloat) - low) / (high - low)).clamp(0, 1);
  return f / shape.factor * ramp + f * (1 - ramp);
}

at::Tensor llama3(const at::Tensor& f, const RotaryShape& shape) {
  const at::Tensor wavelength = 2 * kPi / f;
  const double longest = shape.original_length / shape.low_frequency_factor;
  const double shortest = shape.original_length / shape.high_frequency_factor;
  const at::Tensor share = (shape.original_length / wavelength - shape.low_frequency_factor) /
                           (shape.high_frequency_factor - shape.low_frequency_factor);
  const at::Tensor between = (1 - share) * f / shape.factor + share * f;
  return at::where(wavelength > longest, f / shape.factor, at::where(wavelength < shortest, f, between));
}

}  // namespace

at::Tensor inverse_frequencies(const RotaryShape& shape) {
  const at::Tensor exponent = at::arange(0, shape.width, 2, at::kFloat) / static_cast<double>(shape.width);
  const at::Tensor f = 1.0 / at::pow(shape.theta, exponent);
  switch (shape.scaling) {
    case RotaryShape::Scaling::kNone:
      return f;
    case RotaryShape::Scaling::kLinear:
      return f / shape.factor;
    case RotaryShape::Scaling::kYarn:
      return yarn(f, shape);
    case RotaryShape::Scaling::kLlama3:
      return llama3(f, shape);
  }
  return f;
}

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryShape& shape) {
  const at::Tensor frequencies = inverse_frequencies(shape).to(x.scalar_type());
  const at::Tensor angle = positions.to(x.scalar_type()).unsqueeze(-1) * frequencies;  // [B, L, width / 2]
  const at::Tensor cos = (at::cos(angle) * shape.attention_factor).unsqueeze(1);
  const at::Tensor sin = (at::sin(angle) * shape.attention_factor).unsqueeze(1);
  const int64_t half = shape.width / 2;
  const at::Tensor first = x.narrow(-1, 0, half), second = x.narrow(-1, half, half);
  const at::Tensor rest = x.narrow(-1, shape.width, x.size(-1) - shape.width);
  return at::cat({first * cos - second * sin, second * cos + first * sin, rest}, -1);
}

}  // namespace assay::reference

#include "cases/spec/nf4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

constexpr std::array<float, 16> kLevels = {
    -1.0F,         -0.696192801F, -0.525073051F, -0.394917488F, -0.284441382F, -0.18477343F, -0.0910500363F, 0.0F,
    0.0795802996F, 0.160930201F,  0.246112302F,  0.337915242F,  0.440709829F,  0.562617004F, 0.722956836F,   1.0F};

// The positive half of the map, without its last level 1; the negative half mirrors it, also without a -1. Seven
// decades of 1, 2, 4 ... 64 levels: midpoints of an even division of [0.1, 1], times a power of ten, in float32
// roundings of torch.linspace that no short formula repeats.
constexpr std::array<float, 127> kPositive = {
    5.5000004e-07F, 3.2500002e-06F, 7.75e-06F,      2.1249998e-05F, 4.375e-05F,    6.625e-05F,     8.875e-05F,
    1.5625001e-04F, 2.6875004e-04F, 3.8125002e-04F, 4.9375003e-04F, 6.062501e-04F, 7.1875006e-04F, 8.3125e-04F,
    9.437501e-04F,  0.0012812499F,  0.00184375F,    0.00240625F,    0.00296875F,   0.0035312497F,  0.00409375F,
    0.0046562497F,  0.0052187503F,  0.00578125F,    0.00634375F,    0.00690625F,   0.00746875F,    0.00803125F,
    0.00859375F,    0.009156249F,   0.00971875F,    0.01140625F,    0.01421875F,   0.01703125F,    0.019843752F,
    0.02265625F,    0.02546875F,    0.028281251F,   0.03109375F,    0.03390625F,   0.036718752F,   0.03953125F,
    0.042343747F,   0.04515625F,    0.04796875F,    0.05078125F,    0.05359375F,   0.05640625F,    0.059218753F,
    0.06203125F,    0.06484375F,    0.067656256F,   0.070468746F,   0.07328125F,   0.07609375F,    0.07890625F,
    0.08171876F,    0.08453125F,    0.08734375F,    0.09015625F,    0.092968754F,  0.09578126F,    0.09859375F,
    0.107031256F,   0.12109375F,    0.13515624F,    0.14921875F,    0.16328125F,   0.17734376F,    0.19140625F,
    0.20546874F,    0.21953125F,    0.23359375F,    0.24765624F,    0.26171875F,   0.27578127F,    0.28984374F,
    0.30390626F,    0.31796873F,    0.33203125F,    0.34609374F,    0.36015624F,   0.37421876F,    0.38828123F,
    0.40234375F,    0.41640624F,    0.43046874F,    0.44453126F,    0.45859373F,   0.47265625F,    0.4867187F,
    0.50078124F,    0.5148437F,     0.5289062F,     0.54296875F,    0.5570313F,    0.5710938F,     0.58515626F,
    0.5992187F,     0.61328125F,    0.6273438F,     0.6414063F,     0.65546876F,   0.6695312F,     0.68359375F,
    0.6976563F,     0.7117188F,     0.72578126F,    0.7398437F,     0.75390625F,   0.7679688F,     0.78203124F,
    0.79609376F,    0.8101562F,     0.82421875F,    0.8382813F,     0.85234374F,   0.86640626F,    0.8804687F,
    0.89453125F,    0.9085938F,     0.92265624F,    0.93671876F,    0.9507812F,    0.96484375F,    0.9789063F,
    0.99296874F};

std::array<float, 256> make_scale_levels() {
  std::array<float, 256> levels{};
  for (size_t i = 0; i < kPositive.size(); ++i) {
    levels[128 + i] = kPositive[i];
    levels[126 - i] = -kPositive[i];
  }
  levels[255] = 1.0F;
  return levels;
}

// To nearest even in a binary format of so many bits behind the point. Exact in double.
float rounded(float value, int bits, int least_exponent, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), least_exponent) - bits);
  const double result = std::nearbyint(value / step) * step;
  return static_cast<float>(std::abs(result) > largest ? std::copysign(INFINITY, result) : result);
}

float rounded(float value, DType dtype) {
  if (dtype == DType::kF16) return rounded(value, 10, -14, 65504.0);
  if (dtype == DType::kBF16) return rounded(value, 7, -126, 0x1.fep127);
  return value;
}

int64_t blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }

}  // namespace

std::span<const float> nf4_levels() { return kLevels; }

std::span<const float> nf4_scale_levels() {
  static const std::array<float, 256> levels = make_scale_levels();
  return levels;
}

std::vector<NamedTensor> named(const Nf4Weight& weight) {
  std::vector<NamedTensor> parts = {{"codes", weight.codes}, {"absmax", weight.absmax}};
  if (weight.is_double()) {
    parts.push_back({"nested_absmax", weight.nested_absmax});
    parts.push_back({"offset", weight.offset});
  }
  return parts;
}

std::string nf4_problem(const Nf4Weight& weight, int64_t n) {
  const auto part = [](const char* name, const HostTensor& tensor, DType dtype, int64_t count) -> std::string {
    if (tensor.dtype() == dtype && tensor.shape() == Shape{count}) return "";
    return fmt::format("{} should be {} [{}], is {} {}", name, dtype_name(dtype), count, dtype_name(tensor.dtype()),
                       to_string(tensor.shape()));
  };
  const int64_t scales = blocks(n, kNf4Block);
  std::string problem = part("codes", weight.codes, DType::kU8, blocks(n, 2));
  if (problem.empty()) problem = part("absmax", weight.absmax, weight.is_double() ? DType::kU8 : DType::kF32, scales);
  if (!weight.is_double()) return problem;
  if (problem.empty())
    problem = part("nested_absmax", weight.nested_absmax, DType::kF32, blocks(scales, kNf4NestedBlock));
  if (problem.empty()) problem = part("offset", weight.offset, DType::kF32, 1);
  return problem;
}

std::vector<float> nf4_scales(const Nf4Weight& weight) {
  if (!weight.is_double()) {
    const auto absmax = weight.absmax.values<float>();
    return {absmax.begin(), absmax.end()};
  }
  const auto codes = weight.absmax.values<uint8_t>();
  const auto nested = weight.nested_absmax.values<float>();
  const float offset = weight.offset.values<float>()[0];
  std::vector<float> scales(codes.size());
  for (size_t b = 0; b < codes.size(); ++b)
    scales[b] = nf4_scale_levels()[codes[b]] * nested[b / kNf4NestedBlock] + offset;
  return scales;
}

HostTensor dequantized(const Nf4Weight& weight, const Shape& shape) {
  HostTensor result(DType::kF32, shape);
  if (const std::string problem = nf4_problem(weight, result.count()); !problem.empty())
    throw InputError("a quantised weight of shape " + to_string(shape), problem);
  const std::vector<float> scales = nf4_scales(weight);
  const auto codes = weight.codes.values<uint8_t>();
  const auto values = result.values<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint8_t code = i % 2 == 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
    values[i] = rounded(kLevels[code] * scales[i / kNf4Block], weight.dtype);
  }
  return result;
}

}  // namespace assay

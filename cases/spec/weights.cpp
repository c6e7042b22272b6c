#include "cases/spec/weights.hpp"

#include <cmath>

#include "cases/spec/error.hpp"

namespace assay {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
  }
  return counter;
}

uint64_t fnv1a64(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

namespace {

struct Range {
  double lo, hi;
};

Range symmetric(double a) { return {-a, a}; }

// Uniform on [-a, a] has variance a^2 / 3, so a gain of 1 keeps the variance of what is projected.
Range projection(double gain, int64_t fan_in) { return symmetric(gain * std::sqrt(3.0 / static_cast<double>(fan_in))); }

// Away from zero on either side, by the parity of the element: a dropped or doubled bias always shows.
Range two_sided(double least, double most, bool is_positive) {
  return is_positive ? Range{least, most} : Range{-most, -least};
}

// The range of one element; row and column are its coordinates in [first dimension, the rest].
Range range_of(const WeightSpec& spec, int64_t row, int64_t column) {
  switch (spec.role) {
    case Role::kEmbedding:
      // The first thing done to it is a norm, so its size matters only where it is the head too: logits as below.
      return projection(3, spec.fan_in);
    case Role::kHead:
      return projection(3, spec.fan_in);  // logits of about 3, the largest near 10
    case Role::kNorm:
    case Role::kGatedNorm:
      return {0.7, 1.3};  // all different, so that a missing or permuted weight shows
    case Role::kInProj:
      return projection(1, spec.fan_in);
    case Role::kOutProj:
      return projection(2, spec.fan_in);  // else a token's own embedding wins and greedy decoding repeats itself
    case Role::kXProj:
      return projection(0.7, spec.fan_in);  // dt, B and C multiply each other
    case Role::kDtProj:
      return projection(0.7, spec.fan_in);  // dt differs from token to token, within softplus' useful range
    case Role::kDtBias:
      return {-3.9, 0.54};  // softplus of it is 0.02 to 1
    case Role::kALog:
      // Slow decay (half-lives of tens to hundreds of tokens) keeps a wrong state visible, fast decay a wrong exponent.
      return (row + column) % 2 == 0 ? Range{-5.0, -2.5} : Range{-0.5, 1.5};
    case Role::kSkip:
      return two_sided(0.4, 1.6, row % 3 != 0);
    case Role::kConv:
      return projection(0.9, spec.fan_in);
    case Role::kConvBias:
      return two_sided(0.2, 0.6, row % 2 == 0);  // act(bias) is far from zero where padding is not masked
    case Role::kLinearBias:
      return two_sided(0.1, 0.5, row % 2 == 0);
    case Role::kZeroNorm:
      return {-0.3, 0.3};
    case Role::kQueryKey:
      return projection(1.5, spec.fan_in);
    case Role::kRouter:
      return projection(1.5, spec.fan_in);  // the chosen well apart from the others
    case Role::kSelectionBias: {
      // Evenly spaced from -0.75 to -0.25, permuted: no ties; strong enough to overrule the score and not so strong
      // that it shuts an expert out; so low that score + bias is often negative and a masked expert must lose to it.
      const int64_t count = spec.shape.at(0), stride = count % 5 == 0 ? 7 : 5, place = (row * stride + 2) % count;
      const double step = 0.5 / static_cast<double>(count);
      const double lo = -0.75 + step * static_cast<double>(place);
      return {lo, lo + step / 4};
    }
    case Role::kAdapter:
      return projection(0.7, spec.fan_in);
  }
  throw InputError(spec.name, "has a role without a range");
}

}  // namespace

HostTensor draw(const WeightSpec& spec, uint64_t seed) {
  HostTensor tensor(DType::kF32, spec.shape);
  const auto values = tensor.values<float>();
  const uint64_t key = fnv1a64(spec.name) ^ seed;
  const int64_t columns = tensor.count() / spec.shape.at(0);
  std::vector<double> scale(static_cast<size_t>(spec.shape[0]), 1.0);
  for (const WeightSpec::RowScale& rows : spec.row_scales)
    for (int64_t row = rows.begin; row < rows.end; ++row) scale.at(static_cast<size_t>(row)) *= rows.scale;

  std::array<uint32_t, 4> words{};
  for (int64_t i = 0; i < tensor.count(); ++i) {
    if (i % 4 == 0) {
      const auto block = static_cast<uint64_t>(i / 4);
      words = philox4x32_10({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                            {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    }
    const int64_t row = i / columns;
    const Range range = range_of(spec, row, i % columns);
    const double u = static_cast<double>(words[static_cast<size_t>(i % 4)] >> 8) * 0x1p-24;
    // This target is compiled with -ffp-contract=off: a fused multiply-add here would change bits with the compiler.
    const double s = scale[static_cast<size_t>(row)];
    values[static_cast<size_t>(i)] = static_cast<float>(s * (range.lo + u * (range.hi - range.lo)));
  }
  return tensor;
}

}  // namespace assay

#include "reference/ops/nf4.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

namespace assay::reference {

namespace {

constexpr float kSmallest = 1e-38F;

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::fabs(value));
  return largest;
}

std::vector<float> midpoints(std::span<const float> levels) {
  std::vector<float> middle;
  for (size_t i = 0; i + 1 < levels.size(); ++i) middle.push_back((levels[i] + levels[i + 1]) / 2);
  return middle;
}

uint8_t nearest(float x, const std::vector<float>& middle) {
  return static_cast<uint8_t>(std::lower_bound(middle.begin(), middle.end(), x) - middle.begin());
}

// The sum of a contiguous row as torch takes it: four vectors of eight lanes side by side, each added up in runs (of
// 16, or longer in a long row) that are then added up level by level; the vectors, what is left of the row, and the
// lanes in order. Any other order is off in the last bit, and the offset is compared bit for bit.
class LaneSum {
 public:
  using Lanes = std::array<float, 8>;

  static float of(std::span<const float> row) {
    const size_t vectors = row.size() / 8;
    float sum = 0;
    if (vectors == 0) return short_sum(row);
    const Lanes lanes = sum_vectors(row.data(), vectors);
    for (size_t i = vectors * 8; i < row.size(); ++i) sum += row[i];
    for (const float lane : lanes) sum += lane;
    return sum;
  }

 private:
  static void add(Lanes& to, const float* from) {
    for (size_t lane = 0; lane < to.size(); ++lane) to[lane] += from[lane];
  }

  static Lanes sum_vectors(const float* data, size_t vectors) {
    std::array<Lanes, 4> sums{};
    for (size_t k = 0; k < sums.size(); ++k) sums[k] = sum_column(data + 8 * k, vectors / 4, 32);
    for (size_t i = vectors / 4 * 4; i < vectors; ++i) add(sums[0], data + 8 * i);
    for (size_t k = 1; k < sums.size(); ++k) add(sums[0], sums[k].data());
    return sums[0];
  }

  static Lanes sum_column(const float* data, size_t count, size_t stride) {
    const auto log2 = static_cast<size_t>(count <= 1 ? 0 : std::bit_width(count - 1));
    const size_t power = std::max<size_t>(4, log2 / 4);
    const size_t run = size_t{1} << power;
    std::array<Lanes, 4> levels{};
    size_t i = 0;
    while (i + run <= count) {
      for (size_t end = i + run; i < end; ++i) add(levels[0], data + i * stride);
      for (size_t level = 1; level < levels.size(); ++level) {
        add(levels[level], levels[level - 1].data());
        levels[level - 1] = {};
        if ((i & ((run - 1) << (level * power))) != 0) break;
      }
    }
    for (; i < count; ++i) add(levels[0], data + i * stride);
    for (size_t level = 1; level < levels.size(); ++level) add(levels[0], levels[level].data());
    return levels[0];
  }

  // Fewer than eight: four scalars side by side.
  static float short_sum(std::span<const float> row) {
    std::array<float, 4> sums{};
    const size_t even = row.size() / 4 * 4;
    for (size_t i = 0; i < even; ++i) sums[i % 4] += row[i];
    for (size_t i = even; i < row.size(); ++i) sums[0] += row[i];
    return ((sums[0] + sums[1]) + sums[2]) + sums[3];
  }
};

// Codes of scales whose mean is taken off.
void quantize_scales(std::span<const float> scales, std::span<uint8_t> codes, std::span<float> nested_absmax) {
  static const std::vector<float> middle = midpoints(nf4_scale_levels());
  for (size_t block = 0; block < nested_absmax.size(); ++block) {
    const size_t begin = block * kNf4NestedBlock, end = std::min<size_t>(begin + kNf4NestedBlock, scales.size());
    const float largest = nested_absmax[block] = largest_magnitude(scales.subspan(begin, end - begin));
    const float inverse = 1 / largest;
    for (size_t i = begin; largest > 0 && i < end; ++i) {
      const float x = std::clamp(scales[i] * inverse, -1.0F, 1.0F);
      // The reciprocal of a subnormal is infinite, and zero times it no number: step 0.
      const int step = std::isnan(x) ? 0 : static_cast<int>(std::fma((x + 1) * 0.5F, 65535.0F, 0.5F));
      codes[i] = nearest(2 * static_cast<float>(step) / 65535.0F - 1, middle);
    }
  }
}

int64_t count_of(int64_t n, int64_t block) { return (n + block - 1) / block; }

}  // namespace

Nf4Weight quantize_nf4(const at::Tensor& weight, bool is_double) {
  static const std::vector<float> middle = midpoints(nf4_levels());
  const at::Tensor row = weight.contiguous().reshape({-1});
  const std::span<const float> values(row.data_ptr<float>(), static_cast<size_t>(row.numel()));
  const int64_t n = row.numel(), blocks = count_of(n, kNf4Block);

  HostTensor codes(DType::kU8, {count_of(n, 2)}), absmax(DType::kF32, {blocks});
  const auto packed = codes.values<uint8_t>();
  const auto scales = absmax.values<float>();
  for (size_t block = 0; block < scales.size(); ++block) {
    const size_t begin = block * kNf4Block, end = std::min<size_t>(begin + kNf4Block, values.size());
    const bool is_short = end - begin < kNf4Block;
    const float largest = largest_magnitude(values.subspan(begin, end - begin));
    const float divisor = std::max(largest, kSmallest), inverse = 1 / divisor;
    scales[block] = is_short ? divisor : largest;
    for (size_t i = begin; i < end; ++i) {
      const float x = std::clamp(is_short ? values[i] / divisor : values[i] * inverse, -1.0F, 1.0F);
      packed[i / 2] |= static_cast<uint8_t>(nearest(x, middle) << (i % 2 == 0 ? 4 : 0));
    }
  }
  // The half byte after an odd last element is the code of zero.
  if (n % 2 == 1) packed.back() |= nearest(0, middle);
  if (!is_double) return {std::move(codes), std::move(absmax), {}, {}};

  const float offset = LaneSum::of(scales) / static_cast<float>(blocks);
  for (float& scale : scales) scale -= offset;
  HostTensor absmax_codes(DType::kU8, {blocks}), nested(DType::kF32, {count_of(blocks, kNf4NestedBlock)});
  quantize_scales(scales, absmax_codes.values<uint8_t>(), nested.values<float>());
  return {std::move(codes), std::move(absmax_codes), std::move(nested), HostTensor({1}, std::vector<float>{offset})};
}

}  // namespace assay::reference

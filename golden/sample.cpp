#include "golden/sample.hpp"

#include <algorithm>

#include "cases/spec/weights.hpp"

namespace assay::golden {
namespace {

constexpr int64_t kWhole = 6, kLeast = 4, kMost = 16;
constexpr int64_t kWidestWindow = 8;

struct Stratum {
  int64_t begin, end;
};

// Stratum s of `size` over `heads` runs of `width` elements: a head's share of the strata cuts that head alone.
Stratum stratum_of(int64_t s, int64_t size, int64_t heads, int64_t width) {
  const int64_t head = s * heads / size;
  const auto first_of = [&](int64_t h) { return (h * size + heads - 1) / heads; };
  const int64_t place = s - first_of(head), share = first_of(head + 1) - first_of(head);
  return {head * width + place * width / share, head * width + (place + 1) * width / share};
}

}  // namespace

int64_t sample_size(const Shape& row) {
  if (const int64_t count = element_count(row); count <= kWhole) return count;
  return row.size() < 2 ? kLeast : std::clamp(row.front(), kLeast, kMost);
}

std::vector<int64_t> sample_indices(std::string_view name, uint64_t seed, const Shape& row, int64_t size) {
  const int64_t count = element_count(row);
  if (size >= count) return {};
  const uint64_t key = fnv1a64(name) ^ seed;
  const int64_t heads = row.size() > 1 && row.front() <= size ? row.front() : 1;
  const int64_t window = row.size() > 1 && row.back() <= kWidestWindow ? row.back() : 1;
  std::vector<int64_t> indices;
  for (int64_t s = 0; s < size; ++s) {
    const auto [begin, end] = stratum_of(s, size, heads, count / heads);
    const auto words = philox4x32_10({static_cast<uint32_t>(s), 0, 0, 0},
                                     {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    const int64_t drawn = begin + static_cast<int64_t>((static_cast<uint64_t>(words[0]) * (end - begin)) >> 32);
    // The element with the column whose turn it is, in the drawn window or the one beside it.
    const int64_t turned = drawn - drawn % window + s % window;
    int64_t index = drawn;
    for (const int64_t candidate : {turned + window, turned - window, turned})
      if (candidate >= begin && candidate < end) index = candidate;
    indices.push_back(index);
  }
  return indices;
}

}  // namespace assay::golden

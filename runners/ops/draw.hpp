// Draw: the inputs of one op call. Every element is a Philox uniform, key = FNV-1a64("<op>.<input>") xor seed, counter
// = element index / 4, as weights are (cases/spec/weights.hpp), so a call is the same on every machine and a tensor's
// first elements do not depend on its length.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "cases/spec/error.hpp"
#include "cases/spec/op_case.hpp"
#include "cases/spec/subject.hpp"
#include "cases/spec/weights.hpp"
#include "runners/ops/in_parts.hpp"
#include "runners/ops/sample.hpp"

namespace assay {

struct Range {
  double lo, hi;
};

inline Range symmetric(double most) { return {-most, most}; }
// Uniform on [-a, a] has variance a^2 / 3: this one keeps the variance of what is summed over `terms` products.
inline Range of_sum(double gain, int64_t terms) {
  return symmetric(gain * std::sqrt(3.0 / static_cast<double>(terms)));
}
// Away from zero on either side: a bias that was dropped or added twice always shows.
inline Range two_sided(double least, double most, bool is_positive) {
  return is_positive ? Range{least, most} : Range{-most, -least};
}

class Draw {
 public:
  // ranges: those of the case, in place of a problem's own. entries: of a sampled call, those that ids may name.
  Draw(const OpSpec& spec, const OpPoint& point, const std::map<std::string, std::pair<double, double>>& ranges,
       uint64_t seed, Entries entries = {});

  int64_t size(const std::string& name) const { return point_.sizes.at(name); }
  double attribute(const std::string& name, double otherwise) const;
  bool has(const std::string& input) const;

  // Fills a float32 input if it is given; range_of(flat index) says where each element lies. It is called from several
  // threads at once.
  template <class RangeOf>
  void each(const std::string& input, RangeOf range_of);
  void all(const std::string& input, Range range) {
    each(input, [range](int64_t) { return range; });
  }
  // Whole numbers in [0, limit); of those, the sampled entries of the size that the input indexes.
  void ids(const std::string& input, int64_t limit);
  // 1 = real, 0 = left padding: rows [B, L] of unlike padding, each with a real column at its end.
  void mask(const std::string& input);

  OpCall take() &&;  // InputError naming an input that was not drawn

 private:
  const OpTensor& tensor_of(const std::string& input) const;
  uint64_t key(const std::string& input) const;
  HostTensor& add(const std::string& input);

  const OpSpec& spec_;
  const OpPoint& point_;
  const std::map<std::string, std::pair<double, double>>& ranges_;
  uint64_t seed_;
  Entries entries_;
  OpCall call_;
};

// Uniforms in [0, 1) of successive elements.
class Uniforms {
 public:
  explicit Uniforms(uint64_t key) : key_(key) {}
  double operator()(int64_t element) {
    if (element % 4 == 0) {
      const auto block = static_cast<uint64_t>(element / 4);
      words_ = philox4x32_10({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                             {static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)});
    }
    return static_cast<double>(words_[static_cast<size_t>(element % 4)] >> 8) * 0x1p-24;
  }

 private:
  uint64_t key_;
  std::array<uint32_t, 4> words_{};
};

template <class RangeOf>
void Draw::each(const std::string& input, RangeOf range_of) {
  if (!has(input)) return;
  HostTensor& tensor = add(input);
  const auto values = tensor.values<float>();
  const auto fill = [&](int64_t begin, int64_t end, auto range_at) {
    Uniforms uniform(key(input));
    for (int64_t i = begin; i < end; ++i) {
      const Range range = range_at(i);
      values[static_cast<size_t>(i)] = static_cast<float>(range.lo + uniform(i) * (range.hi - range.lo));
    }
  };
  const auto given = ranges_.find(input);
  if (given == ranges_.end())
    return in_parts(tensor.count(), [&](int64_t begin, int64_t end) { fill(begin, end, range_of); });
  const Range one{given->second.first, given->second.second};
  in_parts(tensor.count(), [&](int64_t begin, int64_t end) { fill(begin, end, [one](int64_t) { return one; }); });
}

}  // namespace assay

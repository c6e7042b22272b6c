#include "runners/bitwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

bool is_equal(const HostTensor& a, int64_t i, const HostTensor& b, int64_t j) {
  const size_t width = size_of(a.dtype());
  const size_t at = static_cast<size_t>(i) * width, other = static_cast<size_t>(j) * width;
  if (std::memcmp(a.bytes().data() + at, b.bytes().data() + other, width) == 0) return true;
  const bool is_real =
      a.dtype() == DType::kF64 || a.dtype() == DType::kF32 || a.dtype() == DType::kF16 || a.dtype() == DType::kBF16;
  return is_real && std::isnan(a.at(i)) && std::isnan(b.at(j));
}

class Comparison {
 public:
  Comparison(const LegTrace& a, const LegTrace& b, const std::vector<ProbeSpec>& table) : a_(a), b_(b) {
    for (const ProbeSpec& probe : table) table_.emplace(probe.name, &probe);
  }

  BitwiseResult run() {
    for (size_t i = 0; i < a_.rows.size(); ++i)
      for (size_t j = 0; j < b_.rows.size() && !result_.first; ++j)
        if (a_.rows[i].input == b_.rows[j].input) compare_rows(i, j);
    if (result_.first)
      if (const auto known = table_.find(result_.first->probe); known != table_.end())
        result_.first->layer = known->second->layer;
    return std::move(result_);
  }

 private:
  // `count` elements from a's and b's on; false once one differs.
  struct Block {
    const HostTensor &a, &b;
    int64_t a_begin, b_begin, count;
  };
  bool compare(const Block& block, const golden::Finding& place, const Shape& shape) {
    for (int64_t i = 0; i < block.count; ++i) {
      ++result_.elements;
      if (is_equal(block.a, block.a_begin + i, block.b, block.b_begin + i)) continue;
      if (!result_.first) {
        result_.first = place;
        result_.first->what = "bits";
        result_.first->index = coordinates(i, shape);
        result_.first->expected = block.a.at(block.a_begin + i);
        result_.first->got = block.b.at(block.b_begin + i);
        result_.first->of = block.count;
      }
      ++result_.first->bad;
    }
    return !result_.first;
  }

  // Both there, of one dtype and, after the first `outer` dimensions, of one shape.
  bool fits(const NamedTensor* a, const NamedTensor* b, size_t outer, golden::Finding place) {
    if (a && b) {
      const Shape &left = a->value.shape(), &right = b->value.shape();
      if (a->value.dtype() == b->value.dtype() && left.size() == right.size() && left.size() >= outer &&
          std::equal(left.begin() + static_cast<std::ptrdiff_t>(outer), left.end(),
                     right.begin() + static_cast<std::ptrdiff_t>(outer)))
        return true;
      place.what = "shape";
      place.detail = fmt::format("{} {} in one leg, {} {} in the other", to_string(left), dtype_name(a->value.dtype()),
                                 to_string(right), dtype_name(b->value.dtype()));
    } else {
      place.what = "missing";
    }
    place.bad = place.of = 1;
    result_.first = std::move(place);
    return false;
  }

  void compare_rows(size_t i, size_t j) {
    const RowPlan &a_row = a_.rows[i], &b_row = b_.rows[j];
    const auto common =
        std::mismatch(a_row.tokens.begin(), a_row.tokens.end(), b_row.tokens.begin(), b_row.tokens.end()).first -
        a_row.tokens.begin();
    for (const CallRecord& b_call : b_.calls)
      for (const CallRecord& a_call : a_.calls) {
        const Span a_span = fresh_span(a_call, a_row, common), b_span = fresh_span(b_call, b_row, common);
        const int64_t begin = std::max(a_span.position, b_span.position);
        const int64_t end = std::min(a_span.position + a_span.count, b_span.position + b_span.count);
        if (begin < end)
          compare_calls(a_call, {i, a_span.column + begin - a_span.position}, b_call,
                        {j, b_span.column + begin - b_span.position}, begin, end - begin);
        if (result_.first) return;
      }
    if (a_row.tokens == b_row.tokens) compare_states(i, j);
  }

  struct Corner {
    size_t row;
    int64_t column;
  };
  void compare_calls(const CallRecord& a, Corner a_at, const CallRecord& b, Corner b_at, int64_t position,
                     int64_t count) {
    golden::Finding place;
    place.step = b.step;
    place.row = static_cast<int64_t>(b_at.row);
    for (const NamedTensor& probe : a.trace.probes)
      if (!b.trace.find(probe.name)) {
        place.probe = probe.name;
        fits(&probe, nullptr, 2, place);
        return;
      }
    for (const NamedTensor& got : b.trace.probes) {
      place.probe = got.name;
      place.position = -1;
      const auto expected = std::find_if(a.trace.probes.begin(), a.trace.probes.end(),
                                         [&](const NamedTensor& probe) { return probe.name == got.name; });
      if (!fits(expected == a.trace.probes.end() ? nullptr : &*expected, &got, 2, place)) return;
      ++result_.probes;
      const Shape shape(got.value.shape().begin() + 2, got.value.shape().end());
      const int64_t width = element_count(shape);
      const auto first_of = [&](const HostTensor& tensor, Corner at) {
        return (static_cast<int64_t>(at.row) * tensor.shape()[1] + at.column) * width;
      };
      for (int64_t t = 0; t < count; ++t) {
        place.position = position + t;
        if (!compare({expected->value, got.value, first_of(expected->value, a_at) + t * width,
                      first_of(got.value, b_at) + t * width, width},
                     place, shape))
          return;
      }
    }
  }

  void compare_states(size_t i, size_t j) {
    if (a_.states.empty() && b_.states.empty()) return;
    golden::Finding place;
    place.step = b_.calls.empty() ? -1 : b_.calls.back().step;
    place.row = static_cast<int64_t>(j);
    const auto find = [](const std::vector<NamedTensor>& states, const std::string& name) {
      const auto found =
          std::find_if(states.begin(), states.end(), [&](const NamedTensor& state) { return state.name == name; });
      return found == states.end() ? nullptr : &*found;
    };
    for (const NamedTensor& state : a_.states) {
      place.probe = state.name;
      if (!fits(&state, find(b_.states, state.name), 1, place)) return;
    }
    for (const NamedTensor& got : b_.states) {
      place.probe = got.name;
      const NamedTensor* expected = find(a_.states, got.name);
      if (!fits(expected, &got, 1, place)) return;
      ++result_.probes;
      const Shape shape(got.value.shape().begin() + 1, got.value.shape().end());
      const int64_t width = element_count(shape);
      const auto known = table_.find(got.name);
      const bool has_columns = known != table_.end() && !known->second->follows.empty() && shape.size() == 3;
      const int64_t columns = has_columns ? shape[1] : 1, inner = has_columns ? shape[2] : width;
      const int64_t heads = has_columns ? shape[0] : 1;
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t t = has_columns ? b_.rows[j].pad : 0; t < columns; ++t) {
          const int64_t offset = (head * columns + t) * inner;
          if (compare({expected->value, got.value, static_cast<int64_t>(i) * width + offset,
                       static_cast<int64_t>(j) * width + offset, inner},
                      place, {inner}))
            continue;
          result_.first->index = coordinates(offset + result_.first->index.front(), shape);
          return;
        }
    }
  }

  const LegTrace &a_, &b_;
  std::map<std::string, const ProbeSpec*> table_;
  BitwiseResult result_;
};

}  // namespace

BitwiseResult compare_bits(const LegTrace& a, const LegTrace& b, const std::vector<ProbeSpec>& probes) {
  for (const LegTrace* trace : {&a, &b})
    if (trace->calls.empty()) throw HarnessError("leg " + trace->plan->name, "kept no calls to be compared");
  return Comparison(a, b, probes).run();
}

}  // namespace assay

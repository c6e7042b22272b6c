// Comparison: one tensor, row by row, against a record's numbers or against another leg's. The part of compare.cpp that
// looks at elements; shapes and ranges are checked before.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "golden/compare.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

int64_t layer_of(std::string_view probe);  // "layers.3.mixer.conv1d" -> 3; -1 outside the layers

class Comparison {
 public:
  // A state's rows are its heads, which lead the coordinates; a sequence's are positions. Both references must outlive
  // the comparison.
  Comparison(const Record& record, const Bounds& bounds, bool is_state);

  void golden_row(int64_t p, std::span<const float> got);  // the whole row p of the record
  void leg_row(int64_t p, std::span<const float> expected, std::span<const float> got);

  Tally tally(int64_t rows) const;  // of the rows compared

 private:
  // Differences of one class against their bounds.
  struct Count {
    double used = 0;
    int64_t bad = 0, of = 0;
    bool is_out(double difference, double bound);
  };

  void compare_value(int64_t p, int64_t flat, float expected, float got, double bound);
  bool find_not_finite(int64_t p, std::span<const float> got, const float* kept, float norm);
  void note_not_finite(int64_t p, int64_t flat, float expected, float got);
  Finding finding(const char* what, int64_t p, int64_t flat, double expected, double got, double bound) const;

  const Record& record_;
  const Bounds& bounds_;
  bool is_state_;
  int64_t width_;  // elements of a row
  Count values_, norms_;
  int64_t bad_not_finite_ = 0;
  std::optional<Finding> not_finite_, out_of_bounds_;
};

}  // namespace assay::golden

// The life of a golden: record -> pending -> review -> accept or reject; check re-records and classes. Pending files
// lie in golden/pending/<model>/, never read by a run.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "golden/golden.hpp"

namespace assay::golden {

enum class Class {
  kSame,       // equal, number for number
  kNoise,      // every difference within the factor of the floor that a right implementation stays in
  kDrift,      // beyond that, same greedy tokens
  kDifferent,  // other tokens, or beyond 100 floors
  kNew,        // nothing to compare with
};
std::string_view class_name(Class c);

struct Change {
  std::string id;
  Class kind = Class::kNew;
  std::string worst_probe;
  double worst_floors = 0;  // largest difference in units of the position's floor (median floor at least)
  double worst_ulps = 0;
  int64_t tokens_changed = 0;
  std::string note;  // "config digest differs", "probe set differs", ...
};

Change classify(const Golden& committed, const Golden& candidate);

}  // namespace assay::golden

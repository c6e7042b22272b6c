// Sample: the part of an op call that a reference computes where the whole would take it too long. Along some sizes
// entries are computed without each other (rows T, batch rows B, channels, heads, experts); the call of some entries of
// such a size gives what the whole call gives there. Inputs that hold entries of a sampled size (ids of experts) are
// renumbered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cases/spec/op_case.hpp"
#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"

namespace assay {

// Size to its entries, ascending, each once. A size that is not named is whole.
using Entries = std::map<std::string, std::vector<int64_t>>;

// Flat indices from which on an offset of 32 bits wraps: 2^31 and 2^32 bytes of float32, 2^31 and 2^32 elements.
inline const std::vector<int64_t> kWrapMarks = {int64_t{1} << 29, int64_t{1} << 30, int64_t{1} << 31, int64_t{1} << 32};

// Of each size the first and last two entries, the middle one, and those that hold the elements on either side of each
// mark in any input or output of the call. Where an offset wraps, everything behind the mark is read or written
// elsewhere: the last entries, which lie behind it, come out wrong.
Entries entries_at_ends(const OpSpec& spec, const OpPoint& point, const std::vector<std::string>& sizes,
                        const std::vector<int64_t>& marks = kWrapMarks);

class Sample {
 public:
  // InputError where the sampled call is none of the op's (sizes that no longer divide).
  Sample(const OpSpec& spec, const OpPoint& whole, Entries entries);

  bool is_whole() const { return entries_.empty(); }
  const OpPoint& part() const { return part_; }

  HostTensor cut(const HostTensor& whole, const OpTensor& tensor) const;
  // The inputs of the part. InputError for an id that is none of the sampled entries.
  OpCall cut(const OpCall& call) const;
  // The outputs of the part; one that does not have the whole's shape is left as it is.
  OpResult cut(const OpResult& result) const;
  // Coordinates in an output of the part become those in the whole.
  golden::Finding in_whole(golden::Finding finding) const;

 private:
  const OpSpec& spec_;
  OpPoint whole_, part_;
  Entries entries_;
};

}  // namespace assay

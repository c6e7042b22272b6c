// What a case must agree with beyond its own file: its config, and the other cases of the corpus.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cases/spec/case.hpp"

namespace assay {

// Its config and inputs exist, lengths, calls and tokens fit, ops and forms are known, legs that must agree have an
// input in common. InputError naming file and pointer.
void check_case(const Case& test_case, const Corpus& corpus);

// A run is recorded once: every case that cites it leaves the same modules unquantised.
class CitedRuns {
 public:
  // InputError where a case before it cites one of its runs and leaves other modules out.
  void check(const Case& test_case);

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  struct First {
    std::string id;
    std::vector<std::string> unquantized;
  };
  std::map<Key, First> cited_;
};

}  // namespace assay

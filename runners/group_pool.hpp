// GroupPool: groups of cases on several worker processes at once. A group is one subject and model; its cases run in
// order in one worker, which builds each config once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cases/spec/case.hpp"
#include "runners/subject_process.hpp"

namespace assay {

struct CaseGroup {
  std::unique_ptr<SubjectProcess> worker;
  std::vector<const Case*> cases;
  int64_t limit = 1;  // groups of the same subject (by its argument) at once
};

// Runs every case: groups in the order given, at most `jobs` at once. run_case is called from several threads.
// The first exception that it throws stops the run (Interrupts) and is thrown again when every thread has ended; a
// group whose run is stopped takes no further case.
void run_groups(std::vector<CaseGroup> groups, int64_t jobs, Interrupts& interrupts,
                const std::function<void(SubjectProcess&, const Case&)>& run_case);

}  // namespace assay

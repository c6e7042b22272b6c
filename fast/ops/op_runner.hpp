// OpRunner: ops by themselves, once for their outputs or many times for their speed. Checked builds verify the guard
// words of every buffer after a run; timing uses an arena without guards, so that no checking work is timed.
#pragma once

#include "cases/spec/subject.hpp"
#include "fast/device/arena.hpp"
#include "fast/device/context.hpp"

namespace assay::fast {

class OpRunner {
 public:
  OpRunner();  // UnsupportedError without a usable device

  OpResult run(const OpCall& call);
  // Each launch is preceded by a write and a read of four times the L2 cache, and timed by events. repetitions >= 1
  // (InputError).
  OpTiming time(const OpCall& call, int repetitions);

 private:
  Context context_;
  Arena arena_, timing_arena_;
};

}  // namespace assay::fast

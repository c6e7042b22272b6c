// Running a leg on a model: sessions, calls, and what each call gave.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "runners/leg_plan.hpp"

namespace assay {

struct CallRecord {
  int64_t step = 0;        // index of the call within its leg
  int64_t first = 0;       // its first column
  int64_t columns = 0;     // its number of columns
  int64_t judge_from = 0;  // columns before this one were judged in an earlier call (free_running without a cache)
  Call call;
  Trace trace;
};

// What a leg left behind, for the comparison with other legs.
struct LegTrace {
  const LegPlan* plan = nullptr;
  std::vector<RowPlan> rows;  // with the tokens that were really fed
  std::vector<CallRecord> calls;
  std::vector<NamedTensor> states;  // after the last call; empty without a cache
  std::vector<std::string> kernels;
  std::string moved;  // why its static cache is none (CacheWatch); empty otherwise
};

// The part of a call that holds positions [.., limit) of a row, less what an earlier call has already given.
Span fresh_span(const CallRecord& call, const RowPlan& row, int64_t limit);

// Looks at a call right after it was made, while the session holds its states. Returns false to end the leg.
using AfterCall =
    std::function<bool(const CallRecord& record, const std::vector<RowPlan>& rows, const Session& session)>;

struct LegOptions {
  bool capture = true;                       // every probe, not only logits
  bool keep_trace = false;                   // fill LegTrace::calls and states
  std::function<void()> after_forward = {};  // after every forward call, the request before included; may be empty
};

// Errors are the subject's. `rows` of the result hold the tokens that a free-running leg chose.
LegTrace run_leg(Model& model, const LegPlan& plan, const LegOptions& options, const AfterCall& after_call);

// Greatest logit of each row in the last column; the lowest index among equals, as the original's argmax.
std::vector<int64_t> greedy_tokens(const HostTensor& logits);

}  // namespace assay

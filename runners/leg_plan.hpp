// LegPlan: a leg of a case with everything resolved: which form of an op, which tokens, in which calls, judged by which
// golden. Pure bookkeeping; nothing here runs a subject.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/host_tensor.hpp"
#include "runners/goldens.hpp"

namespace assay {

// A leg's forms with every "*" replaced by one form; a leg with "*" becomes one entry a form (a product, if it has
// several). An op whose forms the subject does not declare runs in its default. NoVerdict(SKIP, no_form) where the leg
// names a form that the subject does not declare.
struct FormChoice {
  std::map<std::string, std::string> forms;
  std::string suffix;        // "[ssd=chunked]", or empty
  bool is_expanded = false;  // came from "*": may be left out if the subject refuses it for this leg
};
std::vector<FormChoice> expand_forms(const Leg& leg, const Capabilities& capabilities);

// Columns of each call; they add up to `columns`. Empty `calls` = one call. InputError naming the leg when they do not
// fit.
std::vector<int64_t> call_sizes(const std::vector<CallSize>& calls, int64_t columns, const std::string& leg);

struct RowPlan {
  std::string input;
  std::vector<int64_t> tokens;  // fed so far or to be fed: real tokens only
  int64_t pad = 0;
  std::optional<Row::Change> change;
  const StoredGolden* golden = nullptr;
  int64_t judged =
      0;  // positions [0, judged) can be judged by the golden: those before a change; all of a free-running row
};

struct LegPlan {
  const Leg* leg = nullptr;
  std::string name;  // leg's name and its forms
  std::map<std::string, std::string> forms;
  bool is_expanded = false;
  std::vector<RowPlan> rows;
  std::vector<int64_t> calls;   // columns of each call; free_running: of the prompt
  int64_t columns = 0;          // sum of calls
  int64_t limit = 0;            // columns that a static cache must hold
  std::vector<int64_t> before;  // tokens of the request before, if any
};

// NoVerdict where a golden is missing or stale.
std::vector<LegPlan> plan_legs(const Case& test_case, const ModelConfig& config, const Capabilities& capabilities,
                               GoldenStore& goldens);

// Left-padded int64 [B, count]: columns [first, first + count) of every row.
HostTensor token_block(const std::vector<RowPlan>& rows, int64_t pad_token, int64_t first, int64_t count);

// uint8 [B, columns]; absent when no row has padding.
HostTensor mask_block(const std::vector<RowPlan>& rows, int64_t columns);

// The real part of columns [first, first + count) of a row with `pad` columns of padding.
struct Span {
  int64_t column = 0;    // within the call
  int64_t position = 0;  // in the row's own sequence
  int64_t count = 0;     // 0: padding only
};
Span real_span(int64_t first, int64_t count, int64_t pad);

}  // namespace assay

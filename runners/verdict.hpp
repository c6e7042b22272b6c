// Verdict: the answer to one case on one subject; one row of results.jsonl (schema runners/schema/result.schema.json).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "golden/compare.hpp"

namespace assay {

enum class Status {
  kPass,
  kMarginal,  // within the bound, over 80 % of it
  kFail,      // a finding
  kError,     // the subject or the case raised an error
  kCrash,     // the process died of a signal
  kTimeout,   // the watchdog ended it
  kOom,       // an allocation failed
  kFallback,  // own kernels were asked for, other code ran
  kHollow,    // matched, but the data proves nothing
  kNoGolden,  // no recorded run to judge by
  kStale,     // the recorded run belongs to another config or input
  kMissing,   // expected by a list, not there
  kSkip,      // see SkipReason
  kWaived,
  kFlaky,  // repetitions disagree
  kUnexpectedPass,
  kNotRun,  // interrupted
};
std::string_view status_name(Status status);     // "NO_GOLDEN"
Status status_from_name(std::string_view name);  // InputError
bool is_allowed(Status status);                  // PASS, MARGINAL, SKIP, WAIVED

// The closed list of reasons for SKIP.
enum class SkipReason {
  kNoGpu,         // the machine has no GPU that the subject can use
  kNotBuilt,      // the subject was left out of this build
  kNoForm,        // the subject cannot be told to use a form of an op that the case asks for
  kNoModel,       // the subject does not have the model
  kNoCapability,  // cache kind, dtype, residency ... that the case needs
  kMemory,        // the machine has less memory than the case says it needs
};
std::string_view skip_name(SkipReason reason);     // "no_gpu"
SkipReason skip_from_name(std::string_view name);  // InputError

struct Verdict {
  std::string subject, case_id, model, config, aspect, tier, dtype, device;
  Status status = Status::kNotRun;
  std::optional<SkipReason> skip;
  std::string reason;
  double seconds = 0;
  double used = 0;  // largest |difference| / bound
  std::string used_by;
  int64_t probes = 0, elements = 0;  // compared
  std::optional<golden::Finding> first;
  std::string leg;                 // of the first finding; "a = b" where two legs disagree
  std::string signature;           // equal for the same failure, whatever the last digits
  std::vector<std::string> notes;  // near-ties, legs left out: shown, never hidden
  std::vector<std::string> kernels;
  std::string case_digest;
  std::vector<std::string> golden_digests;
  std::string outputs;  // OutputDigest of every call; empty where none was made
  int64_t repeats = 1;
  std::string repeat;  // a command line that runs this again
};

// Status, what was wrong, where, and the power of two of the error in bounds:
// "FAIL:value:layers.3.mixer.conv1d:step5:2^8".
std::string signature_of(const Verdict& verdict);

nlohmann::json to_json(const Verdict& verdict);  // without "kind"; non-finite numbers as strings
Verdict verdict_from_json(const nlohmann::json& row);

// FLAKY where the statuses of several runs of one case differ, else the run that used most of its bound, with a note
// where their outputs are not equal bit for bit.
Verdict combine(const std::vector<Verdict>& repetitions);

}  // namespace assay

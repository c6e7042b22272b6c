// Golden: one recorded run of an original model (schema golden/schema/golden.schema.json), at
// golden/models/<model>/<config>.<input>.<kind>.json. Written only by `assay golden record`; golden/README.md tells the
// life cycle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay::golden {

// One recorded tensor: `positions` rows of `shape` elements each, of which `sample` are kept (all, if sample is empty).
// For a sequence probe a row is a token position; for a state a row is one of its leading heads.
struct Record {
  std::string name;  // as in the probe table
  Shape shape;       // of one row
  int64_t positions = 0;
  std::vector<int64_t> sample;  // ascending flat indices into one row; empty = every element
  std::vector<float> values;    // [positions, sample or element_count(shape)]
  std::vector<float> norm;      // [positions] L2 norm of the whole row in the original's float32 run
  // The original's own float32 - float64 difference, over the whole row (not only the sample): largest absolute
  // difference of an element, and of the norm.
  std::vector<float> floor, norm_floor;  // [positions]
  float scale = 0;                       // largest absolute value in the whole tensor
  bool is_sparse = false;                // most elements may rightly be zero

  int64_t columns() const { return sample.empty() ? element_count(shape) : static_cast<int64_t>(sample.size()); }
};

struct StateRecord {
  int64_t cut = 0;  // after a cold prefill of this many tokens
  std::vector<Record> states;
};

// One step of a beam search: the kept beams, best first, each a token after a beam of the step before (the prompt, in
// the first step).
struct BeamStep {
  std::vector<int64_t> sources, tokens;  // [width]
  std::vector<float> log_probs;  // [width + 1] sums of log-probabilities, then that of the best dropped candidate
  float floor = 0;               // largest float32 - float64 difference of them
};

struct BeamRecord {
  std::vector<std::vector<int64_t>> sequences;  // [width][steps] generated tokens, best first
  std::vector<float> scores;  // as the original gives them: the sum over the number of generated tokens
  float floor = 0;            // largest float32 - float64 difference of a score
  std::vector<BeamStep> steps;
};

// How far the original itself moves when it computes in another precision on the same weights: P against R.
struct PrecisionError {
  std::string compute;        // "float16", "bfloat16", "float32"
  std::vector<float> logits;  // [positions] largest |P - R| of the sampled logits, two digits, rounded up
  // Positions, ascending, at which the choice of a router is nearer to a tie than the precision's noise. What follows
  // such a position in its row may rightly be another answer.
  std::vector<int64_t> marked;
};

// A weight as bitsandbytes quantised it.
struct QuantizedWeight {
  std::vector<std::string> codes;     // of each block of 64: first 8 hex digits of sha256 of its packed bytes
  std::vector<float> absmax;          // of each block; nf4 only
  std::vector<int64_t> absmax_codes;  // of each block; nf4dq only
  std::vector<float> nested_absmax;   // of each 256 absmax_codes; nf4dq only
  float offset = 0;                   // nf4dq only
};
struct Quantization {
  std::vector<std::string> unquantized;            // as the case asked for
  std::map<std::string, QuantizedWeight> weights;  // by canonical name: every weight that is quantised
};

// Why the parts of a record do not fit each other; empty if they do.
std::string beam_problem(const BeamRecord& record);

struct Golden {
  std::string model, config, input, kind;  // kind: f32, f16, bf16, nf4, nf4dq
  std::string config_digest;
  std::map<std::string, std::string> weight_digests;  // first 16 hex digits of sha256 of each tensor as loaded
  nlohmann::json original;          // package, version, class, torch, dtype, device, threads, attention
  std::vector<int64_t> prompt;      // as given
  std::vector<int64_t> tokens;      // prompt and greedy continuation
  bool is_logits_only = false;      // recorded without the other probes; states at the end only
  std::vector<float> gap;           // [len(tokens)] best minus second-best logit at each position
  std::vector<Record> probes;       // sequence probes in order of computation; the last is "logits"
  std::vector<StateRecord> states;  // ascending cuts
  std::optional<BeamRecord> beams;  // after the prompt
  // Kinds other than f32. The probes are then R: the original in float32 on the rounded or dequantised weights.
  std::vector<PrecisionError> errors;
  std::vector<std::string> float32_weights;  // f16, bf16: what the original keeps in float32
  std::optional<Quantization> quantization;  // nf4, nf4dq

  std::string id() const { return model + "/" + config + "." + input + "." + kind; }
  const Record* probe(std::string_view name) const;
  const StateRecord* states_at(int64_t cut) const;
};

// InputError naming file and pointer (schema, content digest, sizes that disagree, non-finite floors). read_golden also
// wants the file to lie where its model, config, input and kind say: a copy under another name would judge another run.
Golden read_golden(const std::filesystem::path& file);
Golden parse_golden(const nlohmann::json& document, const std::filesystem::path& file);

// The one text form: keys sorted, one position a line, shortest exact numbers. format(read(f)) == bytes of f.
std::string format(const Golden& golden);

// sha256 of the canonical document without its "content_digest" member: shows that a golden was edited by hand.
std::string content_digest(nlohmann::json document);

std::filesystem::path golden_file(const std::filesystem::path& root, const std::string& model,
                                  const std::string& config, const std::string& input, const std::string& kind);

}  // namespace assay::golden

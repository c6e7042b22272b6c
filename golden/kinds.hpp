// What goldens of kinds other than f32 hold beside the runs: how far the original itself moves in another precision
// (errors), which weights it leaves in float32 (f16, bf16), and its 4-bit weights part by part (nf4, nf4dq).
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/weight_source.hpp"
#include "golden/golden.hpp"
#include "golden/place.hpp"

namespace assay::golden {

// Elements that share a scale, and scales that share one in nf4dq.
inline constexpr int64_t kScaledTogether = 64, kScalesTogether = 256;

struct Kind {
  std::string_view name;
  std::vector<std::string> computes;  // of its errors, in their order
  bool is_rounded = false;            // to 16 bit: has float32_weights
  bool is_quantized = false;          // has a quantization
  bool has_nested_scales = false;
};
std::span<const Kind> kinds();
const Kind* find_kind(std::string_view name);  // null if there is none

// The members of the golden's kind, read into golden, whose kind, tokens and weight_digests are there already. Refused:
// a member that the kind does not have or must have, other precisions than the kind's, sizes that do not fit the run
// or each other, marks that do not ascend within it, a weight that weight_digests does not name.
void parse_kind(const nlohmann::json& document, const Place& root, Golden& golden);

// The same from what golden/record/record.py wrote, into a golden whose probes are composed. HarnessError where it does
// not fit the kind, or the weights' shapes in the manifest.
void compose_kind(const WeightSource& tensors, const nlohmann::json& run, const nlohmann::json& input,
                  const nlohmann::json& manifest, Golden& golden);

// weight_digests: 16 hexadecimal digits each. HarnessError for a weight that was exported and not held, held and not
// exported, or held with other values though the kind leaves it as it is.
std::map<std::string, std::string> compose_digests(std::string_view kind, const nlohmann::json& run,
                                                   const nlohmann::json& manifest);

}  // namespace assay::golden

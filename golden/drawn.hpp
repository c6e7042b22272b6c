// Digests of the weights that configs are drawn to have now: a golden of the same config recorded before the drawing
// changed (its ranges, a tensor's role) answers for other weights.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cases/spec/model_config.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

// Elements of a config up to which its weights are drawn to be looked at: about 5 ms.
inline constexpr int64_t kMostDrawnElements = 200'000;

// Draws each config once. May be used by several threads.
class DrawnWeights {
 public:
  // As Golden::weight_digests; empty for a checkpoint's config and for one with more elements than are drawn here.
  const std::map<std::string, std::string>& digests(const ModelConfig& config);

  // Why the golden is of other weights than the config's now; empty if it is not, or the config is not drawn here. Only
  // weights that the golden's kind leaves as they were drawn are compared.
  std::string stale_reason(const Golden& golden, const ModelConfig& config);

 private:
  std::mutex mutex_;
  std::map<std::string, std::map<std::string, std::string>> held_;  // by config id and digest
};

}  // namespace assay::golden

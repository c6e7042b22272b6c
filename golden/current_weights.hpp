// Digests of the weights that configs have now: a golden of the same config recorded before its weights changed (how
// they are drawn, or what lies in the checkpoint's folder) answers for other weights, and no engine is to blame.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "cases/spec/model_config.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

// Elements of a synthetic config up to which its weights are drawn to be looked at: about 5 ms.
inline constexpr int64_t kMostDrawnElements = 200'000;
// Elements of a checkpoint's config up to which `assay golden list` reads its weights: 64 MiB as float32.
inline constexpr int64_t kMostListedElements = 16 << 20;

// Looks at each weight once, one in memory at a time, and keeps its digest. May be used by several threads, which wait
// for each other.
class CurrentWeights {
 public:
  explicit CurrentWeights(int64_t most_checkpoint_elements = std::numeric_limits<int64_t>::max())
      : most_checkpoint_elements_(most_checkpoint_elements) {}

  // Why the config's weights are not looked at: too many, or there is no such folder; empty if they are.
  std::string left_out(const ModelConfig& config) const;

  // Why the golden is of other weights than the config's now, by the first in the order of the model's table; empty if
  // it is not, or they are not looked at. Weights are rounded as the golden's kind rounds them. Of one that it
  // quantises the scales of nf4 are compared, nothing of nf4dq. Errors of open_weights and read_weight.
  std::string stale_reason(const Golden& golden, const ModelConfig& config);

 private:
  enum class Form { kFloat32, kFloat16, kBFloat16, kBlockScales };
  struct Expected {
    Form form;
    std::string digest;
  };
  static std::optional<Expected> expected_of(const Golden& golden, const std::string& name);
  static std::string digest(HostTensor weight, Form form);

  const int64_t most_checkpoint_elements_;
  std::mutex mutex_;
  std::map<std::string, std::string> digests_;  // by config id, its digest, weight and form
};

}  // namespace assay::golden

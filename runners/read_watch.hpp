// ReadWatch: whether a model read its weights as its residency says, by what was read of the source.
//
//   resident   each tensor exactly once, all of them at load
//   offloaded  at load each tensor at most once; in a forward call each at most as often as the call comes by its group
//              (cases/spec/weight_groups.hpp). What a call did not read the subject had kept: no more than the two
//              largest groups hold, and so says its own count of resident bytes.
//
// Findings: probe "weights.<name>", what "read twice" or "not read", expected and got in times; probe "weights", what
// "kept", expected and got in bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "cases/spec/subject.hpp"
#include "cases/spec/weight_groups.hpp"
#include "golden/compare.hpp"
#include "runners/counted_source.hpp"

namespace assay {

class ReadWatch {
 public:
  ReadWatch(const ModelConfig& config, std::shared_ptr<const CountedSource> source, const LoadOptions& options);

  // The first finding since the last call. after_forward: after every forward call, whoever made it.
  std::optional<golden::Finding> after_load();
  std::optional<golden::Finding> after_forward(const Model& model);
  // What was read until now belongs to nobody's forward call: an earlier leg's, a look at the weights.
  void forget() { source_->take(); }

 private:
  // A tensor read more often than `uses` times its group's; is_load: or, resident, not once.
  std::optional<golden::Finding> judge(const std::map<std::string, int64_t>& read, bool is_load) const;

  std::shared_ptr<const CountedSource> source_;
  std::vector<WeightGroup> groups_;
  std::map<std::string, int64_t> elements_;  // of each tensor
  bool is_offloaded_;
  int64_t allowed_bytes_ = 0, element_bytes_;
};

}  // namespace assay

// FastSession: a batch of rows on the device, with the states of every layer.
//
// kNone     no states; every call starts from nothing
// kDynamic  states allocated by the first call; keys and values grow by doubling
// kStatic   states allocated at the start; the columns of all calls may not exceed the limit. A single column behind
//           others is a replay of a captured graph (step_graph.hpp)
//
// Addresses of a static cache never change: reset fills, reorder copies through scratch. Scratch memory stays with the
// session and is used again by the next call. A call that fails on the device leaves states half written, so the
// session then refuses further calls until reset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/device/arena.hpp"
#include "fast/models/loaded_model.hpp"
#include "fast/models/states.hpp"
#include "fast/models/step_graph.hpp"

namespace assay::fast {

class FastSession : public Session {
 public:
  FastSession(std::shared_ptr<LoadedModel> model, const SessionOptions& options);

  Trace forward(const Call& call) override;
  std::vector<NamedTensor> states() const override;
  int64_t length() const override { return length_; }
  void reset() override;
  void reorder(const std::vector<int64_t>& source) override;
  void crop(int64_t columns) override;
  std::vector<StateAddress> state_addresses() const override;
  int64_t cache_allocations() const override { return states_.allocations(); }
  std::vector<std::string> kernels() const override { return kernels_; }

 private:
  bool has_cache() const { return options_.cache != CacheKind::kNone; }
  Trace run(const Call& call);
  // Of a call's arenas, the states and the weights.
  void check_guards(std::vector<const Arena*> arenas) const;

  std::shared_ptr<LoadedModel> model_;
  SessionOptions options_;
  States states_;
  Arena scratch_;
  std::unique_ptr<StepGraph> step_graph_;  // kStatic
  int64_t length_ = 0;
  bool is_broken_ = false;
  std::vector<std::string> kernels_;
};

}  // namespace assay::fast

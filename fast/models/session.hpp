// FastSession: a batch of rows on the device, with the states of every layer.
//
// kNone     no states; every call starts from nothing
// kDynamic  states allocated by the first call; they do not grow
// kStatic   states allocated at the start; the columns of all calls may not exceed the limit
//
// State addresses never change: reset fills, reorder copies through scratch. Scratch memory stays with the session and
// is used again by the next call. A call that fails on the device leaves states half written, so the session then
// refuses further calls until reset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/device/arena.hpp"
#include "fast/device/tensor.hpp"
#include "fast/models/forms.hpp"
#include "fast/models/loaded_model.hpp"

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
  std::vector<std::string> kernels() const override { return kernels_; }

 private:
  struct LayerTensors {
    Tensor<float> conv, ssm;
  };
  bool has_cache() const { return options_.cache != CacheKind::kNone; }
  void allocate_states();
  Trace run(const Call& call, int64_t columns);

  std::shared_ptr<LoadedModel> model_;
  SessionOptions options_;
  FormChoice conv_form_, scan_form_;
  Arena states_arena_, scratch_;
  std::vector<LayerTensors> states_;
  int64_t length_ = 0;
  bool is_broken_ = false;
  std::vector<std::string> kernels_;
};

}  // namespace assay::fast

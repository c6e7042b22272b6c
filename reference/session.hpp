// ReferenceSession: a batch of rows and the states of its layers (contract: cases/spec/subject.hpp).
// A call that throws leaves the session as it was. A static cache keeps its states at fixed addresses, keys and values
// for as many columns as its limit, and refuses columns beyond it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "reference/counted_memory.hpp"
#include "reference/forms.hpp"
#include "reference/models/network.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

// What a model's sessions share.
struct LoadedModel {
  std::string id;  // "mamba2/tiny"
  std::unique_ptr<Network> network;
  std::unique_ptr<WeightStore> weights;
  std::shared_ptr<MemoryCount> memory;
  at::ScalarType rounds_to = at::kFloat;  // reference/pass.hpp
};

class ReferenceSession final : public Session {
 public:
  // InputError for rows or a static limit below 1; UnsupportedError for an unknown op or form.
  ReferenceSession(std::shared_ptr<const LoadedModel> model, const SessionOptions& options);

  Trace forward(const Call& call) override;
  std::vector<NamedTensor> states() const override;
  int64_t length() const override { return length_; }
  void reset() override;
  void reorder(const std::vector<int64_t>& source) override;
  void crop(int64_t columns) override;
  std::vector<StateAddress> state_addresses() const override;
  int64_t cache_allocations() const override { return cache_allocations_; }

 private:
  at::Tensor allocate(const Shape& shape);  // for a static cache
  void keep(const std::vector<LayerState>& states);

  std::shared_ptr<const LoadedModel> model_;
  SessionOptions options_;
  Forms forms_;
  // As the network sees them; with a static cache, keys and values are the filled part of buffers_.
  std::vector<LayerState> states_;
  std::vector<LayerState> buffers_;  // static cache only
  int64_t length_ = 0;
  int64_t cache_allocations_ = 0;
};

}  // namespace assay::reference

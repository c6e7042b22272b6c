// A subject with static caches and offloaded weights, honest or with one fault in how it keeps them: the tiny subject
// computes, this one keeps house.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/weight_groups.hpp"
#include "cases/spec/weights.hpp"
#include "runners/testing/fixture.hpp"

namespace assay::testing {

enum class HouseFault {
  kNone,
  kMoves,         // the second state of a static cache is elsewhere after the second call
  kAllocates,     // every call allocates the static cache anew, and finds the old addresses free
  kNamesNothing,  // no addresses
  kFlipsABit,     // the last bit of an element of a state, from the third call on
  kKeepsAll,      // offloaded: everything is read in the first call and never again
  kSaysAll,       // offloaded: reads as it should and holds on to what it read
  kSaysNothing,   // offloaded: counts no resident bytes
  kReadsTwice,    // the norm of the second layer
  kReadsLate,     // resident: the norm of the second layer is read in the first call
};

class StoreSubject final : public Subject {
 public:
  explicit StoreSubject(HouseFault fault) : fault_(fault), capabilities_(tiny_subject().capabilities()) {
    capabilities_.caches.push_back(CacheKind::kStatic);
    capabilities_.residencies.push_back(Residency::kOffloaded);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions& options) override {
    return std::make_unique<StoreModel>(fault_, config, std::move(source), options);
  }

 private:
  inline static const std::string kNorm = "backbone.layers.1.norm.weight";

  struct Reader {
    HouseFault fault;
    std::shared_ptr<const WeightSource> source;
    std::vector<WeightGroup> groups;
    bool is_offloaded;
    int64_t calls = 0, peak_bytes = 0;

    void read(const std::string& name) const {
      source->read(name);
      if (fault == HouseFault::kReadsTwice && name == kNorm) source->read_elements(name, 0, 1);
    }
    void read_all() const {
      for (const WeightGroup& group : groups)
        for (const std::string& name : group.weights)
          if (is_offloaded || fault != HouseFault::kReadsLate || name != kNorm) read(name);
    }
    void forward() {
      ++calls;
      if (!is_offloaded && fault == HouseFault::kReadsLate && calls == 1) source->read(kNorm);
      if (is_offloaded && (calls == 1 || fault != HouseFault::kKeepsAll)) read_all();
      int64_t all = 0, largest = 0;
      for (const WeightGroup& group : groups) {
        all += 4 * group.elements;
        largest = std::max(largest, 4 * group.elements);
      }
      peak_bytes = fault == HouseFault::kSaysNothing ? 0 : fault == HouseFault::kSaysAll ? all : largest;
    }
  };

  class StoreSession final : public Session {
   public:
    StoreSession(std::unique_ptr<Session> inner, Reader& reader, CacheKind cache)
        : inner_(std::move(inner)), reader_(reader), is_static_(cache == CacheKind::kStatic) {}

    Trace forward(const Call& call) override {
      reader_.forward();
      ++calls_;
      return inner_->forward(call);
    }
    std::vector<NamedTensor> states() const override {
      std::vector<NamedTensor> states = inner_->states();
      if (is_static_ && reader_.fault == HouseFault::kFlipsABit && calls_ > 2) {
        float& value = states.back().value.values<float>()[4];
        value = std::nextafter(value, 2 * value);
      }
      return states;
    }
    int64_t length() const override { return inner_->length(); }
    void reset() override { inner_->reset(); }
    std::vector<StateAddress> state_addresses() const override {
      std::vector<StateAddress> addresses;
      if (!is_static_ || reader_.fault == HouseFault::kNamesNothing) return addresses;
      for (const NamedTensor& state : inner_->states()) addresses.push_back({state.name, 64 * (addresses.size() + 1)});
      if (reader_.fault == HouseFault::kMoves && calls_ > 1) addresses[1].address += 4096;
      return addresses;
    }
    int64_t cache_allocations() const override {
      return is_static_ ? (reader_.fault == HouseFault::kAllocates ? 4 * calls_ : 4) : 0;
    }

   private:
    std::unique_ptr<Session> inner_;
    Reader& reader_;
    bool is_static_;
    int64_t calls_ = 0;
  };

  class StoreModel final : public Model {
   public:
    StoreModel(HouseFault fault, const ModelConfig& config, std::shared_ptr<const WeightSource> source,
               const LoadOptions& options)
        : inner_(tiny_subject().load(config, open_weights(config), {})),
          reader_{fault, std::move(source), weight_groups(config), options.residency == Residency::kOffloaded} {
      if (!reader_.is_offloaded) reader_.read_all();
    }
    std::unique_ptr<Session> start(const SessionOptions& options) override {
      SessionOptions inner = options;
      if (inner.cache == CacheKind::kStatic) inner.cache = CacheKind::kDynamic;
      return std::make_unique<StoreSession>(inner_->start(inner), reader_, options.cache);
    }
    HostTensor weight(const std::string& name) const override { return inner_->weight(name); }
    MemoryUse memory() const override { return {.peak_weight_bytes = reader_.peak_bytes}; }

   private:
    std::unique_ptr<Model> inner_;
    Reader reader_;
  };

  HouseFault fault_;
  Capabilities capabilities_;
};

}  // namespace assay::testing

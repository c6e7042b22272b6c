// States: what the layers of one session carry, on the device.
//
// Recurrent states have one place from allocation on. Keys and values have room for `capacity` columns: as many as were
// asked for at once (a static cache), or twice as many whenever there are too few, by a copy into a new place.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/blocks/state_shapes.hpp"
#include "fast/device/arena.hpp"
#include "fast/device/context.hpp"

namespace assay::fast {

class States {
 public:
  // context outlives it. Nothing is allocated yet.
  States(Context& context, std::vector<LayerStateShape> shapes, int64_t rows);

  // All states zero, room for `columns` columns. MemoryError: nothing is allocated then.
  void allocate(int64_t columns);
  // Room for `columns` columns at least, of which the first `held` stay. MemoryError: every layer keeps what it held.
  void grow(int64_t columns, int64_t held);
  bool are_allocated() const { return !layers_.empty(); }

  std::vector<LayerState> pointers() const;  // one a layer; all null before the allocation
  // Named as in the probe table, keys and values cut to `columns` columns; zeros before the allocation.
  std::vector<NamedTensor> download(int64_t columns) const;
  std::vector<StateAddress> addresses() const;
  int64_t allocations() const { return allocations_; }
  // Name of a state that holds no earlier columns to go back to; empty if there is none.
  std::string first_recurrent() const;

  void reset();
  // Row b becomes the old row source[b], of `columns` columns; through scratch.
  void reorder(const std::vector<int64_t>& source, int64_t columns, Arena& scratch);
  void add_arenas(std::vector<const Arena*>& to) const;

 private:
  struct Layer {
    Tensor<float> conv, ssm, delta;
    std::unique_ptr<Arena> cache_arena;  // of key and value
    Tensor<float> key, value;            // [B, nkv, capacity, hd]
    int64_t capacity = 0;
  };
  // name: below "layers.{l}.". A state of one shape, or a growing one of so many columns a row.
  struct State {
    const char* name;
    Shape LayerStateShape::*shape;
    Tensor<float> Layer::*tensor;
    float* LayerState::*pointer;
    bool grows;
  };
  static const std::vector<State>& kinds();
  void allocate_cache(Layer& layer, size_t l, int64_t capacity);
  std::string name_of(size_t layer, const State& kind) const;
  void zero_recurrent(const std::vector<Layer>& layers) const;

  Context& context_;
  std::vector<LayerStateShape> shapes_;
  int64_t rows_;
  Arena arena_;
  std::vector<Layer> layers_;
  int64_t allocations_ = 0;
};

}  // namespace assay::fast

#include "fast/models/states.hpp"

#include <algorithm>
#include <utility>

#include "fast/device/check.hpp"
#include "fast/kernels/gather_rows.hpp"

namespace assay::fast {

namespace {

constexpr int64_t kSlabBytes = int64_t{8} << 20;
constexpr int64_t kFirstCapacity = 64;

Shape with_rows(int64_t rows, const Shape& inner) {
  Shape shape = {rows};
  shape.insert(shape.end(), inner.begin(), inner.end());
  return shape;
}

// [B, nkv, columns, hd] of a column's [nkv, hd].
Shape with_columns(int64_t rows, const Shape& column, int64_t columns) { return {rows, column[0], columns, column[1]}; }

// The first `columns` columns of a cache, a row of the view for each batch row and key head.
Matrix cut(const Tensor<float>& cache, int64_t columns) {
  const int64_t width = cache.shape[3];
  return {cache.data, cache.shape[0] * cache.shape[1], columns * width, cache.shape[2] * width};
}

void copy_rows(const Matrix& from, const Matrix& to, const int64_t* source, int64_t rows, cudaStream_t stream) {
  GatherRowsParams<float> p;
  p.x = from.data;
  p.x_stride = from.stride;
  p.source = source;
  p.y = to.data;
  p.y_stride = to.stride;
  p.source_rows = rows;
  p.rows = rows;
  p.inner = from.rows / rows;
  p.width = from.columns;
  gather_rows(p, stream);
}

}  // namespace

const std::vector<States::State>& States::kinds() {
  static const std::vector<State> kinds = {
      {"mixer.conv_state", &LayerStateShape::conv, &Layer::conv, &LayerState::conv, false},
      {"mixer.ssm_state", &LayerStateShape::ssm, &Layer::ssm, &LayerState::ssm, false},
      {"mixer.delta_state", &LayerStateShape::delta, &Layer::delta, &LayerState::delta, false},
      {"attn.k_cache", &LayerStateShape::key, &Layer::key, &LayerState::key, true},
      {"attn.v_cache", &LayerStateShape::value, &Layer::value, &LayerState::value, true},
  };
  return kinds;
}

States::States(Context& context, std::vector<LayerStateShape> shapes, int64_t rows)
    : context_(context), shapes_(std::move(shapes)), rows_(rows), arena_("states", context.memory(), kSlabBytes) {}

std::string States::name_of(size_t layer, const State& kind) const {
  return "layers." + std::to_string(layer) + "." + kind.name;
}

void States::allocate(int64_t columns) {
  const int64_t capacity = std::max(columns, int64_t{1});
  const Arena::Mark mark = arena_.mark();
  std::vector<Layer> layers(shapes_.size());
  int64_t allocations = 0;
  try {
    for (size_t l = 0; l < layers.size(); ++l) {
      for (const State& kind : kinds()) {
        const Shape& shape = shapes_[l].*kind.shape;
        if (shape.empty()) continue;
        ++allocations;
        if (!kind.grows)
          layers[l].*kind.tensor = fast::allocate<float>(arena_, with_rows(rows_, shape), name_of(l, kind));
      }
      allocate_cache(layers[l], l, capacity);
    }
  } catch (...) {
    arena_.drop(mark);
    throw;
  }
  zero_recurrent(layers);
  layers_ = std::move(layers);
  allocations_ += allocations;
}

void States::allocate_cache(Layer& layer, size_t l, int64_t capacity) {
  if (shapes_[l].key.empty()) return;
  // An arena of its own, so that a cache which has grown gives back its old place.
  auto arena = std::make_unique<Arena>("states", context_.memory(), 0);
  for (const State& kind : kinds())
    if (kind.grows)
      layer.*kind.tensor =
          fast::allocate<float>(*arena, with_columns(rows_, shapes_[l].*kind.shape, capacity), name_of(l, kind));
  layer.cache_arena = std::move(arena);
  layer.capacity = capacity;
}

void States::grow(int64_t columns, int64_t held) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (shapes_[l].key.empty() || layers_[l].capacity >= columns) continue;
    Layer larger;
    allocate_cache(larger, l, std::max({columns, 2 * layers_[l].capacity, kFirstCapacity}));
    allocations_ += 2;
    if (held > 0)
      for (const State& kind : kinds())
        if (kind.grows)
          copy_rows(cut(layers_[l].*kind.tensor, held), cut(larger.*kind.tensor, held), nullptr, rows_,
                    context_.stream());
    context_.synchronize("growth of a cache");
    layers_[l].key = larger.key;
    layers_[l].value = larger.value;
    layers_[l].capacity = larger.capacity;
    layers_[l].cache_arena = std::move(larger.cache_arena);
  }
}

std::vector<LayerState> States::pointers() const {
  std::vector<LayerState> states(shapes_.size());
  for (size_t l = 0; l < layers_.size(); ++l) {
    for (const State& kind : kinds()) states[l].*kind.pointer = (layers_[l].*kind.tensor).data;
    states[l].capacity = layers_[l].capacity;
  }
  return states;
}

std::vector<NamedTensor> States::download(int64_t columns) const {
  std::vector<NamedTensor> states;
  for (size_t l = 0; l < shapes_.size(); ++l)
    for (const State& kind : kinds()) {
      const Shape& inner = shapes_[l].*kind.shape;
      if (inner.empty()) continue;
      const std::string name = name_of(l, kind);
      Shape shape = kind.grows ? with_columns(rows_, inner, columns) : with_rows(rows_, inner);
      if (layers_.empty()) {
        states.push_back({name, HostTensor(DType::kF32, std::move(shape))});
        continue;
      }
      const Tensor<float>& tensor = layers_[l].*kind.tensor;
      const Matrix held = kind.grows ? cut(tensor, columns) : as_matrix(tensor, tensor.count());
      states.push_back({name, fast::download(held, std::move(shape), name, context_.stream())});
    }
  return states;
}

std::vector<StateAddress> States::addresses() const {
  std::vector<StateAddress> addresses;
  for (size_t l = 0; l < layers_.size(); ++l)
    for (const State& kind : kinds())
      if (const Tensor<float>& tensor = layers_[l].*kind.tensor; tensor)
        addresses.push_back({name_of(l, kind), reinterpret_cast<uintptr_t>(tensor.data)});
  return addresses;
}

std::string States::first_recurrent() const {
  for (size_t l = 0; l < shapes_.size(); ++l)
    for (const State& kind : kinds())
      if (!kind.grows && !(shapes_[l].*kind.shape).empty()) return name_of(l, kind);
  return "";
}

void States::zero_recurrent(const std::vector<Layer>& layers) const {
  for (const Layer& layer : layers)
    for (const State& kind : kinds())
      if (const Tensor<float>& tensor = layer.*kind.tensor; tensor && !kind.grows) zero(tensor, context_.stream());
}

void States::reset() {
  arena_.poison();
  for (const Layer& layer : layers_)
    if (layer.cache_arena) layer.cache_arena->poison();
  zero_recurrent(layers_);
}

void States::reorder(const std::vector<int64_t>& source, int64_t columns, Arena& scratch) {
  const cudaStream_t stream = context_.stream();
  Scratch all(scratch);
  const Tensor<int64_t> rows = upload<int64_t>(scratch, HostTensor({rows_}, source), "reorder", stream);
  for (const Layer& layer : layers_)
    for (const State& kind : kinds()) {
      const Tensor<float>& tensor = layer.*kind.tensor;
      if (!tensor || (kind.grows && columns == 0)) continue;
      const int64_t row = tensor.count() / rows_;
      const Matrix in_place = kind.grows ? cut(tensor, columns) : Matrix{tensor.data, rows_, row, row};
      Scratch one(scratch);
      const Matrix moved = as_matrix(
          fast::allocate<float>(scratch, {in_place.rows, in_place.columns}, "reordered state"), in_place.columns);
      copy_rows(in_place, moved, rows.data, rows_, stream);
      copy_rows(moved, in_place, nullptr, rows_, stream);
      one.close();
    }
  all.close();
}

void States::add_arenas(std::vector<const Arena*>& to) const {
  to.push_back(&arena_);
  for (const Layer& layer : layers_)
    if (layer.cache_arena) to.push_back(layer.cache_arena.get());
}

}  // namespace assay::fast

#include "cases/spec/torch_bin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "cases/spec/error.hpp"
#include "cases/spec/pickle.hpp"
#include "cases/spec/select.hpp"
#include "cases/spec/torch_archive.hpp"

namespace assay {

namespace {

struct Held {
  PickledTensor tensor;
  const TorchArchive::Entry* storage = nullptr;
  int64_t count = 0;  // elements
  int64_t span = 0;   // elements of the storage from the first to the last, both included; 0 without elements
  bool is_dense = false;
};

// Dimensions that move, slowest first.
struct Dimension {
  int64_t stride, size;
};

std::vector<Dimension> moving(const PickledTensor& tensor) {
  std::vector<Dimension> all;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] > 1) all.push_back({tensor.strides[i], tensor.shape[i]});
  return all;
}

// Row-major without gaps, which dimensions of size 1 do not change.
bool is_dense(const PickledTensor& tensor) {
  int64_t expected = 1;
  const auto dimensions = moving(tensor);
  for (auto dimension = dimensions.rbegin(); dimension != dimensions.rend(); ++dimension) {
    if (dimension->stride != expected) return false;
    expected *= dimension->size;
  }
  return true;
}

class TorchBinSource : public WeightSource {
 public:
  explicit TorchBinSource(const std::filesystem::path& file) : archive_(file) {
    const std::string pickle = archive_.read_text(*archive_.find("data.pkl"), kLargestPickle);
    std::map<std::string, std::string> first_of;  // storage to the first tensor that uses it
    for (PickledTensor& tensor : read_state_dict(pickle, archive_.path() + " data.pkl")) {
      const std::string& first = first_of.emplace(tensor.storage, tensor.name).first->second;
      if (first != tensor.name) check_same_storage(tensor, held_.at(first).tensor);
      const std::string name = tensor.name;
      held_.emplace(name, placed(std::move(tensor)));
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& entry : held_) all.push_back(entry.first);
    return all;
  }
  bool has(const std::string& name) const override { return held_.count(name) > 0; }

  TensorHeader header(const std::string& name) const override {
    const PickledTensor& tensor = find(name).tensor;
    return {name, tensor.dtype, tensor.shape};
  }

  HostTensor read(const std::string& name) const override {
    const Held& held = find(name);
    HostTensor tensor(held.tensor.dtype, held.tensor.shape);
    if (held.is_dense)
      read_range(held, 0, tensor.bytes());
    else
      gather(held, tensor.bytes());
    return tensor;
  }

  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override {
    const Held& held = find(name);
    if (!held.is_dense) return WeightSource::read_elements(name, begin, count);
    if (begin < 0 || count < 0 || begin > held.count || count > held.count - begin)
      throw InputError(where(name), fmt::format("has {} elements, not {} from {} on", held.count, count, begin));
    HostTensor part(held.tensor.dtype, {count});
    read_range(held, begin, part.bytes());
    return part;
  }

  std::string where(const std::string& name) const override { return archive_.path() + " tensor '" + name + "'"; }
  std::string place() const override { return archive_.path(); }

 private:
  const Held& find(const std::string& name) const {
    const auto found = held_.find(name);
    if (found == held_.end())
      throw InputError(archive_.path(), "has no tensor '" + name + "'", "nearest: " + nearest_list(name, names()));
    return found->second;
  }

  void check_same_storage(const PickledTensor& tensor, const PickledTensor& first) const {
    if (tensor.dtype != first.dtype || tensor.storage_count != first.storage_count)
      throw InputError(where(tensor.name),
                       fmt::format("is of storage {} with {} {} elements, which is one of {} {} for '{}'",
                                   tensor.storage, tensor.storage_count, dtype_name(tensor.dtype), first.storage_count,
                                   dtype_name(first.dtype), first.name));
  }

  Held placed(PickledTensor tensor) const {
    const std::string place = where(tensor.name);
    const std::string entry_name = "data/" + tensor.storage;
    Held held;
    held.storage = archive_.find(entry_name);
    if (!held.storage) throw InputError(place, "its storage '" + entry_name + "' is not in the archive");
    const uint64_t width = size_of(tensor.dtype), bytes = held.storage->size;
    const auto elements = static_cast<uint64_t>(tensor.storage_count);
    if (elements > UINT64_MAX / width || elements * width != bytes)
      throw InputError(place, fmt::format("its storage '{}' has {} bytes, not the {} {} elements that the pickle says",
                                          entry_name, bytes, tensor.storage_count, dtype_name(tensor.dtype)));
    try {
      held.count = element_count(tensor.shape);
    } catch (const InputError& error) {
      throw InputError(place, error.problem());
    }
    if (held.count > 0) held.span = span(tensor, place);
    if (tensor.offset > tensor.storage_count || held.span > tensor.storage_count - tensor.offset)
      throw InputError(
          place, fmt::format("shape {}, strides {} and offset {} reach beyond the {} elements of its "
                             "storage",
                             to_string(tensor.shape), to_string(tensor.strides), tensor.offset, tensor.storage_count));
    held.is_dense = held.count == 0 || is_dense(tensor);
    held.tensor = std::move(tensor);
    return held;
  }

  // Elements from the first to the last; refuses elements that share a place.
  int64_t span(const PickledTensor& tensor, const std::string& place) const {
    std::vector<Dimension> dimensions = moving(tensor);
    std::sort(dimensions.begin(), dimensions.end(),
              [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
    int64_t last = 0;  // the last element that the faster dimensions reach
    for (const Dimension& dimension : dimensions) {
      if (dimension.stride <= last)
        throw InputError(place,
                         fmt::format("shape {} with strides {} has elements that overlap", to_string(tensor.shape),
                                     to_string(tensor.strides)),
                         "an expanded tensor: save it with .contiguous()");
      int64_t reach = 0;
      if (__builtin_mul_overflow(dimension.stride, dimension.size - 1, &reach) ||
          __builtin_add_overflow(last, reach, &last) || last == INT64_MAX)
        throw InputError(place, fmt::format("shape {} with strides {} reaches beyond 64 bits", to_string(tensor.shape),
                                            to_string(tensor.strides)));
    }
    return last + 1;
  }

  void read_range(const Held& held, int64_t begin, std::span<std::byte> into) const {
    const auto first = static_cast<uint64_t>(held.tensor.offset + begin) * size_of(held.tensor.dtype);
    if (!into.empty())
      archive_.read(*held.storage, first, into.data(), into.size(), "tensor '" + held.tensor.name + "'");
  }

  void gather(const Held& held, std::span<std::byte> into) const {
    HostTensor range(held.tensor.dtype, {held.span});
    read_range(held, 0, range.bytes());
    const size_t width = size_of(held.tensor.dtype);
    const auto dimensions = moving(held.tensor);
    std::vector<int64_t> index(dimensions.size(), 0);
    const std::byte* from = range.bytes().data();
    int64_t at = 0;
    for (std::byte* to = into.data(); to != into.data() + into.size(); to += width) {
      std::memcpy(to, from + static_cast<size_t>(at) * width, width);
      for (size_t d = dimensions.size(); d-- > 0;) {
        at += dimensions[d].stride;
        if (++index[d] < dimensions[d].size) break;
        at -= dimensions[d].stride * dimensions[d].size;
        index[d] = 0;
      }
    }
  }

  TorchArchive archive_;
  std::map<std::string, Held> held_;
};

}  // namespace

std::shared_ptr<const WeightSource> open_torch_bin(const std::filesystem::path& file) {
  return std::make_shared<TorchBinSource>(file);
}

}  // namespace assay

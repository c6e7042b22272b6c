#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/layouts.hpp"
#include "cases/spec/select.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace {

std::string weight(const std::string& name) { return "weight '" + name + "'"; }

class CanonicalSource : public WeightSource {
 public:
  CanonicalSource(const ModelConfig& config, std::shared_ptr<const WeightSource> source)
      : source_(std::move(source)), table_(model_spec(config.model).weights(config)) {
    std::set<std::string> explained;
    auto places = placements(config.model, table_);
    for (size_t row = 0; row < table_.size(); ++row) {
      const std::string& name = table_[row].name;
      for (Placement& place : places[row]) {
        for (const Piece& piece : place.pieces) explained.insert(piece.name);
        if (is_held(name, place)) held_[name].push_back({row, std::move(place)});
      }
      if (!held_.count(name)) throw missing_weight(name, *source_);
      for (const Held& held : held_[name]) check(held);
    }
    const bool has_head = held_.count("lm_head.weight") > 0;
    for (const std::string& name : source_->names()) {
      if (explained.count(name) || is_ignored(config.model, name) || (!has_head && name == "lm_head.weight")) continue;
      throw InputError(source_->where(name), "is not one of the weights of " + config.model,
                       "nearest expected: " + nearest_list(name, this->names()));
    }
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const WeightSpec& spec : table_) all.push_back(spec.name);
    return all;
  }
  bool has(const std::string& name) const override { return held_.count(name) > 0; }

  TensorHeader header(const std::string& name) const override {
    const Held& held = find(name).front();
    return {name, source_->header(held.place.pieces[0].name).dtype, table_[held.row].shape};
  }

  HostTensor read(const std::string& name) const override {
    const Held& held = find(name).front();
    const Shape& shape = table_[held.row].shape;
    const HostTensor flat = read_elements(name, 0, element_count(shape));
    HostTensor tensor(flat.dtype(), shape);
    std::copy(flat.bytes().begin(), flat.bytes().end(), tensor.bytes().begin());
    return tensor;
  }

  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override {
    const std::vector<Held>& all = find(name);
    HostTensor first = gather(all.front(), begin, count);
    for (size_t copy = 1; copy < all.size(); ++copy) {
      const HostTensor other = gather(all[copy], begin, count);
      for (int64_t i = 0; i < count; ++i) {
        const double a = first.at(i), b = other.at(i);
        if (a == b || (a != a && b != b)) continue;
        const auto place = to_string(coordinates(begin + i, table_[all[copy].row].shape));
        throw InputError(weight(name),
                         fmt::format("is held twice with unlike values: {} in '{}', {} in '{}' at {}", a,
                                     all.front().place.pieces[0].name, b, all[copy].place.pieces[0].name, place),
                         "the file mixes two models or two layouts");
      }
    }
    return first;
  }

  std::optional<Nf4Weight> nf4(const std::string& name) const override {
    const std::vector<Held>& all = find(name);
    const std::vector<Piece>& pieces = all.front().place.pieces;
    std::optional<Nf4Weight> weight = source_->nf4(pieces[0].name);
    if (!weight) return weight;
    // Blocks run over a whole tensor of the file: codes of a part of one, or of several in a row, are not the weight's.
    if (pieces.size() > 1 || pieces[0].count != element_count(pieces[0].shape))
      throw InputError(source_->where(pieces[0].name), "is quantised together with other weights than '" + name + "'");
    if (all.size() > 1) read(name);  // copies must be equal
    return weight;
  }

  std::string where(const std::string& name) const override {
    const auto found = held_.find(name);
    if (found == held_.end() || found->second.front().place.pieces.size() != 1) return weight(name);
    const std::string& there = found->second.front().place.pieces[0].name;
    return there == name ? source_->where(there) : source_->where(there) + " (" + weight(name) + ")";
  }

 private:
  struct Held {
    size_t row;
    Placement place;
  };

  const std::vector<Held>& find(const std::string& name) const {
    const auto found = held_.find(name);
    if (found == held_.end())
      throw InputError(weight(name), "is not one of the model's", "nearest: " + nearest_list(name, names()));
    return found->second;
  }

  // All of its pieces are there. Some of them only is an error, whether or not another place has the whole.
  bool is_held(const std::string& name, const Placement& place) const {
    const Piece* lacking = nullptr;
    size_t there = 0;
    for (const Piece& piece : place.pieces) {
      if (source_->has(piece.name)) {
        ++there;
      } else if (!lacking) {
        lacking = &piece;
      }
    }
    if (lacking && there > 0)
      throw InputError(weight(name), fmt::format("is held only in part: '{}' is missing", lacking->name),
                       "nearest there: " + nearest_list(lacking->name, source_->names()));
    return !lacking;
  }

  void check(const Held& held) const {
    const DType dtype = source_->header(held.place.pieces[0].name).dtype;
    for (const Piece& piece : held.place.pieces) {
      const TensorHeader header = source_->header(piece.name);
      if (header.shape != piece.shape)
        throw InputError(source_->where(piece.name),
                         fmt::format("expected shape {}, got {}", to_string(piece.shape), to_string(header.shape)));
      if (header.dtype != dtype)
        throw InputError(source_->where(piece.name),
                         fmt::format("is {}, and '{}' beside it {}: both are parts of '{}'", dtype_name(header.dtype),
                                     held.place.pieces[0].name, dtype_name(dtype), table_[held.row].name));
    }
  }

  // Elements [begin, begin + count) of the canonical tensor, from one of its places.
  HostTensor gather(const Held& held, int64_t begin, int64_t count) const {
    const int64_t all = element_count(table_[held.row].shape);
    if (begin < 0 || count < 0 || begin > all || count > all - begin)
      throw InputError(weight(table_[held.row].name),
                       fmt::format("has {} elements, not {} from {} on", all, count, begin));
    HostTensor flat(source_->header(held.place.pieces[0].name).dtype, {count});
    const auto width = static_cast<int64_t>(size_of(flat.dtype()));
    int64_t at = 0;  // of the piece within the canonical tensor
    for (const Piece& piece : held.place.pieces) {
      const int64_t from = std::max(at, begin), to = std::min(at + piece.count, begin + count);
      if (from < to) {
        const HostTensor part = source_->read_elements(piece.name, piece.begin + from - at, to - from);
        std::memcpy(flat.bytes().data() + (from - begin) * width, part.bytes().data(), part.bytes().size());
      }
      at += piece.count;
    }
    return flat;
  }

  std::shared_ptr<const WeightSource> source_;
  std::vector<WeightSpec> table_;
  std::map<std::string, std::vector<Held>> held_;
};

}  // namespace

std::shared_ptr<const WeightSource> canonical_source(const ModelConfig& config,
                                                     std::shared_ptr<const WeightSource> source) {
  return std::make_shared<CanonicalSource>(config, std::move(source));
}

}  // namespace assay

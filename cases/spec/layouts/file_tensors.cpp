#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/layouts/tables.hpp"

namespace assay {

namespace {

using namespace layouts;

constexpr std::string_view kHeadName = "lm_head.weight";

bool has_extras(std::string_view model) {
  return std::any_of(std::begin(kIgnored), std::end(kIgnored), [&](const Ignored& i) { return i.model == model; });
}

bool is_tied(const std::vector<WeightSpec>& table) {
  return std::none_of(table.begin(), table.end(), [](const WeightSpec& spec) { return spec.name == kHeadName; });
}

Layout traits(std::string_view model, const std::vector<WeightSpec>& table,
              const std::vector<std::vector<Placement>>& places) {
  Layout found = (is_tied(table) ? kTiedCopy : 0u) | (has_extras(model) ? kExtras : 0u);
  for (const std::vector<Placement>& row : places)
    for (const Placement& place : row) found |= place.layout;
  return found;
}

std::set<std::string_view> models_with(Trait trait) {
  std::set<std::string_view> models;
  if (trait == kFused || trait == kOneByOne)
    for (const ExpertNames& names : kExperts)
      if (names.is_released_fused == (trait == kOneByOne)) models.insert(names.model);
  if (trait == kRenamed)
    for (const Renaming& renaming : renamings()) models.insert(renaming.model);
  if (trait == kCopies)
    for (const SharedBlock& block : kShared) models.insert(block.model);
  if (trait == kExtras)
    for (const Ignored& ignored : kIgnored) models.insert(ignored.model);
  return models;
}

// Gathers the parts of each tensor of the file; the parts arrive in the order of the table.
class Gathered {
 public:
  void add(size_t row, const Placement& place) {
    int64_t at = 0;
    for (const Piece& piece : place.pieces) {
      const auto [found, is_first] = index_.emplace(piece.name, tensors_.size());
      if (is_first) {
        tensors_.push_back({piece.name, piece.shape, {}});
        begins_.emplace_back();
      }
      // Where in the file's tensor the part belongs: q, k, v and up, gate need not stand in the table's order.
      std::vector<int64_t>& begins = begins_[found->second];
      const auto place_of = std::upper_bound(begins.begin(), begins.end(), piece.begin) - begins.begin();
      begins.insert(begins.begin() + place_of, piece.begin);
      auto& parts = tensors_[found->second].parts;
      parts.insert(parts.begin() + place_of, {row, at, piece.count});
      at += piece.count;
    }
  }
  void add(FileTensor tensor) {
    tensors_.push_back(std::move(tensor));
    begins_.emplace_back();
  }
  std::vector<FileTensor> take() { return std::move(tensors_); }

 private:
  std::vector<FileTensor> tensors_;
  std::vector<std::vector<int64_t>> begins_;
  std::map<std::string, size_t> index_;
};

}  // namespace

std::string layout_name(Layout layout) {
  std::string text;
  for (const auto& [trait, name] : kTraits)
    if (layout & trait) text += fmt::format("{}{}", text.empty() ? "" : ",", name);
  return text.empty() ? "released" : text;
}

Layout layout_from_name(std::string_view name) {
  Layout layout = kReleased;
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find(',', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    const auto found =
        std::find_if(std::begin(kTraits), std::end(kTraits), [&](const auto& t) { return t.second == word; });
    if (found != std::end(kTraits))
      layout |= found->first;
    else if (word != "released")
      throw InputError("layout '" + std::string(name) + "'", fmt::format("'{}' is not known", word),
                       "known: released, and united with commas " + layout_name(~0u));
    at = end + 1;
  }
  return layout;
}

Layout config_traits(const ModelConfig& config) {
  const auto table = model_spec(config.model).weights(config);
  return traits(config.model, table, placements(config.model, table));
}

std::string layouts_by_model() {
  std::string text;
  for (const auto& [trait, name] : kTraits) {
    std::string models;
    for (const std::string_view model : models_with(trait))
      models += fmt::format("{}{}", models.empty() ? "" : ", ", model);
    text += fmt::format("  {:<10}  {}\n", name, trait == kTiedCopy ? "configs whose embedding is the head" : models);
  }
  return text;
}

std::vector<FileTensor> file_tensors(const ModelConfig& config, Layout layout) {
  const auto table = model_spec(config.model).weights(config);
  const auto places = placements(config.model, table);
  const Layout known = traits(config.model, table, places);
  if (layout & ~known)
    throw InputError("layout '" + layout_name(layout & ~known) + "'", "files of " + config.id() + " have none such",
                     "there: " + layout_name(known));

  const Layout single = layout & (kFused | kOneByOne | kRenamed);
  const auto fits = [](Layout place, Layout wanted) { return (place & ~wanted) == 0; };
  Gathered gathered;
  for (size_t row = 0; row < table.size(); ++row) {
    const Placement* best = &places[row][0];
    for (const Placement& place : places[row])
      if (fits(place.layout, single) && std::popcount(place.layout) > std::popcount(best->layout)) best = &place;
    gathered.add(row, *best);
    if (layout & kCopies)
      for (const Placement& place : places[row])
        if ((place.layout & kCopies) && fits(place.layout, single | kCopies)) gathered.add(row, place);
    if ((layout & kTiedCopy) && table[row].role == Role::kEmbedding) {
      const int64_t count = element_count(table[row].shape);
      gathered.add({std::string(kHeadName), table[row].shape, {{row, 0, count}}});
    }
  }
  if (layout & kExtras)
    for (const Ignored& ignored : kIgnored)
      if (ignored.model == config.model) gathered.add({std::string(ignored.sample), {3}, {}});
  return gathered.take();
}

}  // namespace assay

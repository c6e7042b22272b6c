#include "cases/spec/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "cases/spec/layouts/tables.hpp"

namespace assay {

namespace {

using namespace layouts;

const ExpertNames* expert_names(std::string_view model) {
  for (const ExpertNames& names : kExperts)
    if (names.model == model) return &names;
  return nullptr;
}

const SharedBlock* shared_block(std::string_view model) {
  for (const SharedBlock& block : kShared)
    if (block.model == model) return &block;
  return nullptr;
}

// A prefix that is there already is not put in front once more.
std::string replaced(std::string name, std::string_view from, std::string_view to) {
  if (to.starts_with(from) && name.starts_with(to)) return name;
  const size_t at = from.starts_with('.') ? name.find(from) : (name.starts_with(from) ? 0 : std::string::npos);
  return at == std::string::npos ? name : name.replace(at, from.size(), to);
}

std::string renamed(std::string name, const Replacements& replacements) {
  for (const auto& [from, to] : replacements) name = replaced(std::move(name), from, to);
  return name;
}

// "model.layers.4.x" -> 4; -1 for a name outside the layers.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t at = name.find(kLayers);
  int64_t layer = -1;
  if (at != std::string_view::npos)
    std::from_chars(name.data() + at + kLayers.size(), name.data() + name.size(), layer);
  return layer;
}

// "a.experts.3.w1.weight" -> {"a.experts", 3, "w1"}
struct ExpertName {
  std::string prefix;
  int64_t expert = 0;
  std::string part;
};
bool parse_expert(const std::string& name, ExpertName& found) {
  constexpr std::string_view kMark = ".experts.", kEnd = ".weight";
  const size_t at = name.find(kMark);
  if (at == std::string::npos || !name.ends_with(kEnd)) return false;
  const char* end = name.data() + name.size() - kEnd.size();
  const auto [after, error] = std::from_chars(name.data() + at + kMark.size(), end, found.expert);
  if (error != std::errc() || after == end || *after != '.') return false;
  found.prefix = name.substr(0, at + kMark.size() - 1);
  found.part.assign(after + 1, end);
  return true;
}

class Places {
 public:
  Places(std::string_view model, const std::vector<WeightSpec>& table)
      : model_(model), table_(table), experts_(expert_names(model)), shared_(shared_block(model)) {
    ExpertName found;
    std::set<int64_t> owners;
    for (size_t row = 0; row < table.size(); ++row) {
      const std::string& name = table[row].name;
      rows_[name] = row;
      if (parse_expert(name, found)) counts_[found.prefix] = std::max(counts_[found.prefix], found.expert + 1);
      if (!shared_) continue;
      if (name.find(shared_->part) != std::string::npos) owners.insert(layer_of(name));
      if (layer_of(name) >= 0 && name.ends_with(fmt::format(".layers.{}.linear.weight", layer_of(name))))
        callers_.push_back(layer_of(name));
    }
    owners_.assign(owners.begin(), owners.end());
  }

  std::vector<Placement> of(const WeightSpec& spec) const {
    const int64_t count = element_count(spec.shape);
    std::vector<Placement> all = {{kReleased, {{spec.name, spec.shape, 0, count}}}};
    if (experts_) add_experts(spec, all);
    if (shared_) add_copies(spec, all);
    const size_t as_named = all.size();
    for (const Renaming& renaming : renamings()) {
      if (renaming.model != model_) continue;
      if (add_row_fusion(spec, renaming, all)) continue;
      for (size_t i = 0; i < as_named; ++i) {
        Placement other = all[i];
        other.layout |= kRenamed;
        for (Piece& piece : other.pieces) piece.name = renamed(piece.name, renaming.replacements);
        if (other.pieces[0].name != all[i].pieces[0].name) all.push_back(std::move(other));
      }
    }
    return all;
  }

 private:
  void add_experts(const WeightSpec& spec, std::vector<Placement>& all) const {
    const int64_t per_gate = experts_->gate.empty() ? 1 : 2;
    const std::string_view fused_name = experts_->gate.empty() ? "up_proj" : "gate_up_proj";
    if (experts_->is_released_fused) {
      const bool is_up = spec.name.ends_with(fmt::format(".experts.{}", fused_name));
      if (!is_up && !spec.name.ends_with(".experts.down_proj")) return;
      const std::string prefix = spec.name.substr(0, spec.name.rfind('.'));
      const int64_t parts = is_up ? per_gate : 1;
      const Shape one = {spec.shape[1] / parts, spec.shape[2]};
      Placement apart{kOneByOne, {}};
      for (int64_t e = 0; e < spec.shape[0]; ++e)
        for (int64_t part = 0; part < parts; ++part) {
          const std::string_view name = !is_up ? experts_->down : part + 1 < parts ? experts_->gate : experts_->up;
          apart.pieces.push_back({fmt::format("{}.{}.{}.weight", prefix, e, name), one, 0, one[0] * one[1]});
        }
      all.push_back(std::move(apart));
      return;
    }
    ExpertName name;
    if (!parse_expert(spec.name, name)) return;
    const bool is_down = name.part == experts_->down;
    if (!is_down && name.part != experts_->gate && name.part != experts_->up) return;
    const int64_t parts = is_down ? 1 : per_gate, count = element_count(spec.shape);
    const int64_t part = !is_down && per_gate == 2 && name.part == experts_->up ? 1 : 0;
    all.push_back({kFused,
                   {{fmt::format("{}.{}", name.prefix, is_down ? "down_proj" : fused_name),
                     {counts_.at(name.prefix), parts * spec.shape[0], spec.shape[1]},
                     (name.expert * parts + part) * count,
                     count}}});
  }

  // Call site j uses block j mod (number of blocks), and the block stands under its first caller.
  void add_copies(const WeightSpec& spec, std::vector<Placement>& all) const {
    if (spec.name.find(shared_->part) == std::string::npos) return;
    const int64_t owner = layer_of(spec.name);
    const auto block = static_cast<size_t>(std::find(owners_.begin(), owners_.end(), owner) - owners_.begin());
    for (size_t site = 0; site < callers_.size(); ++site) {
      if (site % owners_.size() != block || callers_[site] == owner) continue;
      const std::string name =
          replaced(spec.name, fmt::format(".layers.{}.", owner), fmt::format(".layers.{}.", callers_[site]));
      all.push_back({kCopies, {{name, spec.shape, 0, element_count(spec.shape)}}});
    }
  }

  // True where the renaming has this tensor only as rows of another.
  bool add_row_fusion(const WeightSpec& spec, const Renaming& renaming, std::vector<Placement>& all) const {
    for (const RowFusion& fusion : row_fusions()) {
      if (fusion.model != model_) continue;
      for (const std::string_view own : fusion.members) {
        if (spec.name.find(own) == std::string::npos) continue;
        Shape shape = spec.shape;
        shape[0] = 0;
        int64_t begin = 0;
        for (const std::string_view member : fusion.members) {
          const Shape& other = table_[rows_.at(replaced(spec.name, own, member))].shape;
          if (member == own) begin = shape[0];
          shape[0] += other[0];
        }
        const int64_t count = element_count(spec.shape), each_row = count / spec.shape[0];
        const std::string name = renamed(replaced(spec.name, own, fusion.fused), renaming.replacements);
        all.push_back({kRenamed, {{name, shape, begin * each_row, count}}});
        return true;
      }
    }
    return false;
  }

  std::string_view model_;
  const std::vector<WeightSpec>& table_;
  const ExpertNames* experts_;
  const SharedBlock* shared_;
  std::map<std::string, size_t> rows_;
  std::map<std::string, int64_t> counts_;  // experts below a prefix
  std::vector<int64_t> callers_, owners_;  // layers that call a shared block; layers under which the blocks stand
};

}  // namespace

std::vector<std::vector<Placement>> placements(std::string_view model, const std::vector<WeightSpec>& table) {
  const Places places(model, table);
  std::vector<std::vector<Placement>> all;
  for (const WeightSpec& spec : table) all.push_back(places.of(spec));
  return all;
}

bool is_ignored(std::string_view model, std::string_view name) {
  for (const Ignored& ignored : kIgnored)
    if (ignored.model == model &&
        (ignored.pattern.starts_with('.') ? name.ends_with(ignored.pattern) : name.starts_with(ignored.pattern)))
      return true;
  return false;
}

}  // namespace assay

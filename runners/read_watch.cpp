#include "runners/read_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cases/spec/model_spec.hpp"

namespace assay {

namespace {

golden::Finding finding(std::string probe, std::string what, double expected, double got, std::string detail) {
  golden::Finding result;
  result.probe = std::move(probe);
  result.what = std::move(what);
  result.expected = expected;
  result.got = got;
  result.bad = result.of = 1;
  result.detail = std::move(detail);
  return result;
}

int64_t of_two_largest(const std::vector<WeightGroup>& groups) {
  int64_t largest = 0, second = 0;
  for (const WeightGroup& group : groups) {
    second = std::max(second, std::min(largest, group.elements));
    largest = std::max(largest, group.elements);
  }
  return largest + second;
}

}  // namespace

ReadWatch::ReadWatch(const ModelConfig& config, std::shared_ptr<const CountedSource> source, const LoadOptions& options)
    : source_(std::move(source)),
      groups_(weight_groups(config)),
      is_offloaded_(options.residency == Residency::kOffloaded),
      element_bytes_(static_cast<int64_t>(size_of(options.compute))) {
  for (const WeightSpec& spec : model_spec(config.model).weights(config))
    elements_[spec.name] = element_count(spec.shape);
  allowed_bytes_ = element_bytes_ * of_two_largest(groups_);
}

std::optional<golden::Finding> ReadWatch::judge(const std::map<std::string, int64_t>& read, bool is_load) const {
  for (const WeightGroup& group : groups_)
    for (const std::string& name : group.weights) {
      const auto found = read.find(name);
      const int64_t count = found == read.end() ? 0 : found->second, size = elements_.at(name);
      const double times = static_cast<double>(count) / static_cast<double>(size);
      const int64_t most = is_load ? 1 : is_offloaded_ ? group.uses : 0;
      if (count > most * size)
        return finding(
            "weights." + name, "read twice", static_cast<double>(most), times,
            fmt::format("read {:.3g} times {}, {} is enough", times, is_load ? "at load" : "in a forward call", most));
      if (is_load && !is_offloaded_ && count < size)
        return finding("weights." + name, "not read", 1, times, fmt::format("read {:.3g} times at load", times));
    }
  return std::nullopt;
}

std::optional<golden::Finding> ReadWatch::after_load() { return judge(source_->take(), true); }

std::optional<golden::Finding> ReadWatch::after_forward(const Model& model) {
  const std::map<std::string, int64_t> read = source_->take();
  if (auto found = judge(read, false)) return found;
  if (!is_offloaded_) return std::nullopt;
  const auto kept = [this](int64_t bytes, const std::string& how) {
    return finding("weights", "kept", static_cast<double>(allowed_bytes_), static_cast<double>(bytes),
                   fmt::format("{} bytes of weights {}, the two largest groups have {}", bytes, how, allowed_bytes_));
  };
  int64_t unread = 0;
  for (const auto& [name, size] : elements_)
    if (!read.contains(name)) unread += size * element_bytes_;
  if (unread > allowed_bytes_) return kept(unread, "were not read in a forward call");
  const int64_t peak = model.memory().peak_weight_bytes;
  if (peak == 0) return kept(peak, "are said to be the most that was resident");
  if (peak > allowed_bytes_) return kept(peak, "were resident");
  return std::nullopt;
}

}  // namespace assay

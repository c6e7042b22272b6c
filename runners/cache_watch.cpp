#include "runners/cache_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace assay {

std::string CacheWatch::what_moved() const {
  const std::vector<StateAddress> now = session_.state_addresses();
  const auto address_of = [](const std::vector<StateAddress>& all, const std::string& name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
    return found == all.end() ? uintptr_t{0} : found->address;
  };
  for (const NamedTensor& state : session_.states()) {
    const uintptr_t before = address_of(addresses_, state.name), after = address_of(now, state.name);
    if (before == 0 || after == 0) return fmt::format("static cache: the subject names no address of {}", state.name);
    if (before != after) return fmt::format("static cache: {} moved", state.name);
  }
  return "";
}

void CacheWatch::look() {
  if (!is_on_ || !reason_.empty()) return;
  reason_ = what_moved();
  const int64_t allocations = session_.cache_allocations();
  if (!allocations_) allocations_ = allocations;
  if (reason_.empty() && allocations != *allocations_)
    reason_ = fmt::format("static cache: {} allocations of caches and states after the first call, {} later",
                          *allocations_, allocations);
}

}  // namespace assay

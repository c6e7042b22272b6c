#include "fast/device/arena.hpp"

#include <algorithm>
#include <utility>

#include "cases/spec/error.hpp"

namespace assay::fast {

namespace {
int64_t round_up(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }
}  // namespace

BlockLayout block_layout(int64_t bytes, bool is_checked) {
  const int64_t guard = is_checked ? kAlignment : 0;
  const int64_t end = guard + round_up(bytes, 4);
  return {guard, end, std::max(round_up(end, kAlignment) + guard, kAlignment)};
}

Arena::Arena(std::string name, Memory& memory, int64_t slab_bytes, bool is_checked)
    : name_(std::move(name)), memory_(memory), slab_bytes_(slab_bytes), is_checked_(is_checked) {}

Arena::~Arena() {
  for (const Slab& slab : slabs_) memory_.free(slab.base, slab.bytes);
}

void* Arena::allocate(int64_t bytes, std::string label) {
  if (bytes < 0) throw HarnessError(name_ + "/" + label, "a negative size was asked for");
  const BlockLayout layout = block_layout(bytes, is_checked_);
  // Position in the slabs is kept apart until the slab is there: a MemoryError leaves the arena as it was.
  size_t slab = slab_;
  int64_t used = used_;
  while (slab < slabs_.size() && slabs_[slab].bytes - used < layout.bytes) {
    ++slab;
    used = 0;
  }
  if (slab == slabs_.size()) {
    const int64_t slab_bytes = std::max(slab_bytes_, layout.bytes);
    slabs_.reserve(slabs_.size() + 1);
    try {
      slabs_.push_back({static_cast<char*>(memory_.allocate(slab_bytes)), slab_bytes});
    } catch (const MemoryError& error) {
      throw MemoryError(name_ + "/" + label, error.what());
    }
  }
  char* block = slabs_[slab].base + used;
  if (is_checked_) memory_.fill(block, layout.bytes / 4, layout.payload / 4, layout.payload_end / 4);
  allocations_.push_back({std::move(label), block, bytes, layout});
  slab_ = slab;
  used_ = used + layout.bytes;
  requested_ += bytes;
  return block + layout.payload;
}

void Arena::release(const Mark& mark) {
  if (is_held_) return;
  const size_t first = mark.allocations;
  try {
    check_guards_from(first);
  } catch (...) {
    drop(mark);
    throw;
  }
  drop(mark);
}

void Arena::drop(const Mark& mark) noexcept {
  if (is_held_) return;
  while (allocations_.size() > mark.allocations) {
    requested_ -= allocations_.back().requested;
    allocations_.pop_back();
  }
  slab_ = mark.slab;
  used_ = mark.used;
}

void Arena::check_guards_from(size_t first) const {
  std::vector<GuardRegion> regions;
  add_guards(first, regions);
  const int found = memory_.first_overwritten(regions);
  if (found >= 0) throw_overwritten(2 * first + static_cast<size_t>(found));
}

void Arena::check_guards(std::span<const Arena* const> arenas) {
  if (arenas.empty()) return;
  std::vector<GuardRegion> regions;
  for (const Arena* arena : arenas) arena->add_guards(0, regions);
  const int first = arenas[0]->memory_.first_overwritten(regions);
  if (first < 0) return;
  size_t found = static_cast<size_t>(first);
  for (const Arena* arena : arenas) {
    const size_t guards = arena->is_checked_ ? 2 * arena->allocations_.size() : 0;
    if (found < guards) arena->throw_overwritten(found);
    found -= guards;
  }
}

void Arena::add_guards(size_t first, std::vector<GuardRegion>& regions) const {
  if (!is_checked_) return;
  for (size_t i = first; i < allocations_.size(); ++i) {
    const auto& [label, block, requested, layout] = allocations_[i];
    regions.push_back({reinterpret_cast<const uint32_t*>(block), layout.payload / 4});
    regions.push_back(
        {reinterpret_cast<const uint32_t*>(block + layout.payload_end), (layout.bytes - layout.payload_end) / 4});
  }
}

void Arena::throw_overwritten(size_t found) const {
  const Allocation& allocation = allocations_[found / 2];
  throw HarnessError(name_ + "/" + allocation.label,
                     std::string("guard words ") + (found % 2 == 0 ? "before" : "behind") + " this buffer of " +
                         std::to_string(allocation.requested) + " bytes were overwritten",
                     "a kernel that was given this buffer, or its neighbour, writes out of bounds");
}

void Arena::poison() {
  if (!is_checked_) return;
  for (const Allocation& allocation : allocations_)
    memory_.fill(allocation.block, allocation.layout.bytes / 4, allocation.layout.payload / 4,
                 allocation.layout.payload_end / 4);
}

}  // namespace assay::fast

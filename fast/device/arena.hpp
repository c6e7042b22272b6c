// Arena: device memory for one owner (a model's weights, a session's states, the workspace of a call), taken from the
// device in slabs and handed out in order.
//
// Every allocation is 256-byte aligned and named. Checked arenas (ASSAY_FAST_CHECKED, or by argument) put guard words
// before and after each one and fill it with NaN, also when memory is recycled: an overrun is found and named, a read
// of what was never written shows as NaN. The guard begins at the first multiple of 4 bytes beyond the allocation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fast/device/memory.hpp"

namespace assay::fast {

#ifdef ASSAY_FAST_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

inline constexpr int64_t kAlignment = 256;

// Where an allocation's parts lie, in bytes from the start of its block.
struct BlockLayout {
  int64_t payload = 0;      // offset of the memory handed out
  int64_t payload_end = 0;  // offset of the guard behind it
  int64_t bytes = 0;        // the whole block, a multiple of kAlignment
};
BlockLayout block_layout(int64_t bytes, bool is_checked);

class Arena {
 public:
  // memory outlives the arena. A slab has slab_bytes or, where one allocation needs more, just that.
  Arena(std::string name, Memory& memory, int64_t slab_bytes, bool is_checked = kChecked);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // bytes >= 0; MemoryError. label names the allocation in findings.
  void* allocate(int64_t bytes, std::string label);

  // Stack discipline: everything allocated after mark() is given back by release(), and the slabs stay. release checks
  // the guards of what it gives back; drop does not (for unwinding).
  struct Mark {
    size_t allocations, slab;
    int64_t used;
  };
  Mark mark() const { return {allocations_.size(), slab_, used_}; }
  void release(const Mark& mark);
  void drop(const Mark& mark) noexcept;

  // From now on release and drop keep everything, and check nothing: what is allocated stays for good.
  void hold() { is_held_ = true; }

  // HarnessError naming the first allocation whose guard words were overwritten. Waits for the work queued so far.
  void check_guards() const { check_guards_from(0); }
  // The same for several arenas of one memory, by one look at the device; the first finding in the order given.
  static void check_guards(std::span<const Arena* const> arenas);
  // Fills every live allocation with NaN (checked arenas only).
  void poison();
  int64_t requested_bytes() const { return requested_; }

 private:
  struct Allocation {
    std::string label;
    char* block;
    int64_t requested;
    BlockLayout layout;
  };
  struct Slab {
    char* base;
    int64_t bytes;
  };
  void check_guards_from(size_t first) const;
  void add_guards(size_t first, std::vector<GuardRegion>& regions) const;
  // found counts guards, two an allocation, from those of allocation 0 on.
  [[noreturn]] void throw_overwritten(size_t found) const;

  std::string name_;
  Memory& memory_;
  int64_t slab_bytes_;
  bool is_checked_;
  bool is_held_ = false;
  std::vector<Slab> slabs_;
  size_t slab_ = 0;   // the slab that allocations come from
  int64_t used_ = 0;  // of that slab
  int64_t requested_ = 0;
  std::vector<Allocation> allocations_;
};

// A stretch of an arena that ends with the block: close() checks and releases; drop(), for what has been checked with
// other arenas, and leaving by an exception only release.
class Scratch {
 public:
  explicit Scratch(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~Scratch() {
    if (!is_closed_) arena_.drop(mark_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void close() {
    is_closed_ = true;
    arena_.release(mark_);
  }
  void drop() {
    is_closed_ = true;
    arena_.drop(mark_);
  }

 private:
  Arena& arena_;
  Arena::Mark mark_;
  bool is_closed_ = false;
};

}  // namespace assay::fast

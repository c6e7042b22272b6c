#include "fast/device/arena.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cases/spec/error.hpp"

namespace assay::fast {
namespace {

// Host memory in the place of the device's, at most `budget` bytes of it.
class HostMemory : public Memory {
 public:
  explicit HostMemory(int64_t budget = INT64_MAX) : budget_(budget) {}
  int live = 0;

  void fill(void* base, int64_t words, int64_t payload_begin, int64_t payload_end) override {
    auto* word = static_cast<uint32_t*>(base);
    for (int64_t i = 0; i < words; ++i) word[i] = i >= payload_begin && i < payload_end ? kPoison : kGuard;
  }
  int first_overwritten(const std::vector<GuardRegion>& regions) override {
    for (size_t r = 0; r < regions.size(); ++r)
      for (int64_t i = 0; i < regions[r].count; ++i)
        if (regions[r].words[i] != kGuard) return static_cast<int>(r);
    return -1;
  }

 protected:
  void* take(int64_t bytes) override {
    if (bytes > budget_) throw MemoryError("host", std::to_string(bytes) + " bytes asked for");
    budget_ -= bytes;
    ++live;
    return std::aligned_alloc(kAlignment, static_cast<size_t>(bytes));
  }
  void give(void* base) noexcept override {
    --live;
    std::free(base);
  }

 private:
  int64_t budget_;
};

std::string finding(const Arena& arena) {
  try {
    arena.check_guards();
  } catch (const HarnessError& error) {
    return error.what();
  }
  return "";
}

TEST(BlockLayout, GuardsSurroundThePayload) {
  const BlockLayout layout = block_layout(10, true);
  EXPECT_EQ(layout.payload, 256);
  EXPECT_EQ(layout.payload_end, 256 + 12);
  EXPECT_EQ(layout.bytes, 768);
  EXPECT_EQ(block_layout(256, true).payload_end, 512);
  EXPECT_EQ(block_layout(256, true).bytes, 768);
}

TEST(BlockLayout, UncheckedBlocksAreOnlyRoundedUp) {
  EXPECT_EQ(block_layout(10, false).payload, 0);
  EXPECT_EQ(block_layout(10, false).bytes, 256);
  EXPECT_EQ(block_layout(257, false).bytes, 512);
  EXPECT_EQ(block_layout(0, false).bytes, 256);
}

TEST(Arena, AllocationsAreAlignedDisjointAndNan) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  auto* a = static_cast<float*>(arena.allocate(40, "a"));
  auto* b = static_cast<float*>(arena.allocate(40, "b"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % kAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % kAlignment, 0u);
  EXPECT_GE(b - a, 10);
  for (int i = 0; i < 10; ++i) EXPECT_NE(a[i], a[i]) << i;
  EXPECT_EQ(arena.requested_bytes(), 80);
}

TEST(Arena, OneElementBehindIsFoundAndNamed) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  arena.allocate(40, "quiet");
  auto* loud = static_cast<float*>(arena.allocate(40, "loud"));
  loud[9] = 1;
  EXPECT_EQ(finding(arena), "");
  loud[10] = 1;
  EXPECT_NE(finding(arena).find("test/loud: guard words behind"), std::string::npos) << finding(arena);
}

TEST(Arena, OneElementBeforeIsFoundAndNamed) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  arena.allocate(40, "quiet");
  static_cast<float*>(arena.allocate(40, "loud"))[-1] = 1;
  EXPECT_NE(finding(arena).find("test/loud: guard words before"), std::string::npos) << finding(arena);
}

TEST(Arena, SeveralAreCheckedAtOnceAndTheOneOverrunIsNamed) {
  HostMemory memory;
  Arena first("first", memory, 1 << 16, true), unchecked("unchecked", memory, 1 << 16, false),
      last("last", memory, 1 << 16, true);
  first.allocate(40, "a");
  unchecked.allocate(40, "b");
  last.allocate(40, "c");
  auto* loud = static_cast<float*>(last.allocate(40, "loud"));
  const Arena* const arenas[] = {&first, &unchecked, &last};
  EXPECT_NO_THROW(Arena::check_guards(arenas));
  EXPECT_NO_THROW(Arena::check_guards({}));
  loud[-1] = 1;
  try {
    Arena::check_guards(arenas);
    FAIL() << "an overrun was not found";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("last/loud: guard words before"), std::string::npos) << error.what();
  }
}

TEST(Arena, CheckedScratchIsDroppedWithoutAnotherCheck) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  Scratch scratch(arena);
  static_cast<float*>(arena.allocate(4, "overrun"))[1] = 0;
  EXPECT_NO_THROW(scratch.drop());
  EXPECT_EQ(arena.requested_bytes(), 0);
}

TEST(Arena, RecycledMemoryIsPoisonedAgain) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  const Arena::Mark mark = arena.mark();
  auto* first = static_cast<float*>(arena.allocate(4, "first"));
  *first = 7;
  arena.release(mark);
  auto* second = static_cast<float*>(arena.allocate(4, "second"));
  EXPECT_EQ(first, second);
  EXPECT_NE(*second, *second);
}

TEST(Arena, ReleaseChecksWhatItGivesBackAndStillReleases) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  const Arena::Mark mark = arena.mark();
  static_cast<float*>(arena.allocate(4, "overrun"))[1] = 0;
  EXPECT_THROW(arena.release(mark), HarnessError);
  EXPECT_EQ(arena.requested_bytes(), 0);
  EXPECT_EQ(finding(arena), "");
}

TEST(Arena, ScratchLeftByAnExceptionOnlyReleases) {
  HostMemory memory;
  Arena arena("test", memory, 1 << 16, true);
  try {
    Scratch scratch(arena);
    static_cast<float*>(arena.allocate(4, "overrun"))[1] = 0;
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(arena.requested_bytes(), 0);
}

TEST(Arena, SlabsAreKeptAndCountedOnce) {
  HostMemory memory;
  {
    Arena arena("test", memory, 1024, false);
    const Arena::Mark mark = arena.mark();
    arena.allocate(1000, "a");
    arena.allocate(5000, "b");
    arena.allocate(10, "c");
    EXPECT_EQ(memory.use().allocations, 3);
    EXPECT_EQ(memory.use().current_bytes, 1024 + 5120 + 1024);
    arena.release(mark);
    for (int call = 0; call < 3; ++call) {
      arena.allocate(1000, "a");
      arena.allocate(5000, "b");
      arena.allocate(10, "c");
      arena.release(mark);
    }
    EXPECT_EQ(memory.use().allocations, 3);
  }
  EXPECT_EQ(memory.live, 0);
  EXPECT_EQ(memory.use().current_bytes, 0);
  EXPECT_EQ(memory.use().peak_bytes, 1024 + 5120 + 1024);
}

TEST(Arena, OutOfMemoryNamesTheAllocationAndChangesNothing) {
  HostMemory memory(2048);
  Arena arena("test", memory, 1024, true);
  auto* kept = static_cast<float*>(arena.allocate(4, "kept"));
  try {
    arena.allocate(4096, "too large");
    FAIL() << "4096 bytes came from a budget of 2048";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("test/too large"), std::string::npos) << error.what();
  }
  *kept = 1;
  EXPECT_EQ(finding(arena), "");
  EXPECT_EQ(arena.requested_bytes(), 4);
  EXPECT_THROW(arena.allocate(-1, "negative"), HarnessError);
}

}  // namespace
}  // namespace assay::fast

#include <gtest/gtest.h>

#include <cmath>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"
#include "fast/device/context.hpp"
#include "fast/device/device.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {
namespace {

TEST(Device, SaysWhyItCannotBeUsed) {
  const DeviceFacts& facts = device_facts();
  if (facts.is_usable) {
    EXPECT_EQ(facts.reason, "");
    EXPECT_NE(facts.name.find(" sm_"), std::string::npos) << facts.name;
    EXPECT_GT(facts.multiprocessors, 0);
    EXPECT_NO_THROW(require_device());
    return;
  }
  EXPECT_NE(facts.reason, "");
  EXPECT_EQ(facts.name, "none: " + facts.reason);
  try {
    require_device();
    FAIL() << "an unusable device was accepted";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(facts.reason), std::string::npos) << error.what();
  }
}

TEST(Check, AllocationFailureIsMemoryError) {
  EXPECT_THROW(check(cudaErrorMemoryAllocation, "test"), MemoryError);
  EXPECT_THROW(check(cudaErrorInvalidValue, "test"), HarnessError);
  EXPECT_NO_THROW(check(cudaSuccess, "test"));
}

class OnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    context = std::make_unique<Context>();
  }
  std::unique_ptr<Context> context;
};
using GuardWords = OnDevice;

TEST_F(GuardWords, FreshMemoryIsNan) {
  Arena arena("test", context->memory(), 1 << 20, true);
  const HostTensor host = download(allocate<float>(arena, {3, 7}, "fresh"), "fresh", context->stream());
  for (float value : host.values<float>()) EXPECT_TRUE(std::isnan(value));
  EXPECT_NO_THROW(arena.check_guards());
}

TEST_F(GuardWords, OverrunByOneElementIsNamed) {
  Arena arena("test", context->memory(), 1 << 20, true);
  const Tensor<float> quiet = allocate<float>(arena, {5}, "quiet"), loud = allocate<float>(arena, {5}, "loud");
  zero(quiet, context->stream());
  zero({loud.data, {6}}, context->stream());
  try {
    arena.check_guards();
    FAIL() << "an overrun of one element was not found";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("test/loud: guard words behind"), std::string::npos) << error.what();
  }
}

// The table of a check stays on the device for the next one.
TEST_F(GuardWords, AFindingIsFoundAgainAndGoneOnceMended) {
  Arena arena("test", context->memory(), 1 << 20, true);
  const Tensor<float> loud = allocate<float>(arena, {64}, "loud");
  EXPECT_NO_THROW(arena.check_guards());
  EXPECT_NO_THROW(arena.check_guards());
  zero({loud.data, {65}}, context->stream());
  EXPECT_THROW(arena.check_guards(), HarnessError);
  EXPECT_THROW(arena.check_guards(), HarnessError);
  fill_guarded(reinterpret_cast<uint32_t*>(loud.data + 64), 1, 0, 0, context->stream());
  EXPECT_NO_THROW(arena.check_guards());
  allocate<float>(arena, {64}, "another");
  EXPECT_NO_THROW(arena.check_guards());
}

TEST_F(GuardWords, WriteBeforeTheBufferIsNamed) {
  Arena arena("test", context->memory(), 1 << 20, true);
  allocate<float>(arena, {5}, "quiet");
  const Tensor<float> loud = allocate<float>(arena, {5}, "loud");
  zero({loud.data - 1, {1}}, context->stream());
  try {
    arena.check_guards();
    FAIL() << "a write before the buffer was not found";
  } catch (const HarnessError& error) {
    EXPECT_NE(std::string(error.what()).find("test/loud: guard words before"), std::string::npos) << error.what();
  }
}

TEST_F(GuardWords, MemoryErrorHoldsTheSizes) {
  try {
    context->memory().allocate(int64_t{1} << 50);
    FAIL() << "2^50 bytes were allocated";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("1125899906842624 bytes asked for"), std::string::npos) << error.what();
  }
}

using SlicedTensor = OnDevice;

TEST_F(SlicedTensor, DownloadsColumnsOfEachRow) {
  Arena arena("test", context->memory(), 1 << 20, true);
  const HostTensor host({2, 4}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor<float> tensor = upload<float>(arena, host, "host", context->stream());
  const HostTensor part = download(as_matrix(tensor, 4).slice(1, 2), {2, 1, 2}, "part", context->stream());
  const std::vector<float> expected = {1, 2, 5, 6};
  EXPECT_EQ(std::vector<float>(part.values<float>().begin(), part.values<float>().end()), expected);
}

}  // namespace
}  // namespace assay::fast

// What op cases cannot ask of attention: the same bits from a cache of another capacity and with the number of columns
// read on the device, as a captured graph does.
#include "fast/kernels/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "fast/device/check.hpp"
#include "fast/device/context.hpp"
#include "fast/device/device.hpp"
#include "fast/device/tensor.hpp"
#include "fast/kernels/kv_append.hpp"

namespace assay::fast {
namespace {

constexpr int64_t kBatch = 2, kKeyHeads = 2, kHeads = 6, kWidth = 20, kPast = 700, kColumns = kPast + 1;

std::vector<float> numbers(int64_t count, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  uint64_t state = seed;
  for (float& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(static_cast<double>(state >> 40) / 16777216.0 * 2 - 1);
  }
  return values;
}

class AttentionOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    context = std::make_unique<Context>();
    arena = std::make_unique<Arena>("attention test", context->memory(), int64_t{1} << 22);
  }
  float* on_device(const std::vector<float>& values) {
    return upload<float>(*arena, HostTensor({static_cast<int64_t>(values.size())}, values), "values", context->stream())
        .data;
  }
  // The same kPast columns in a cache of this capacity; the rest is the arena's NaN.
  float* cache(int64_t capacity, uint64_t seed) {
    const float* dense = on_device(numbers(kBatch * kKeyHeads * kPast * kWidth, seed));
    const Tensor<float> cache = allocate<float>(*arena, {kBatch * kKeyHeads, capacity, kWidth}, "cache");
    const size_t bytes = kPast * kWidth * sizeof(float);
    check(cudaMemcpy2DAsync(cache.data, static_cast<size_t>(capacity * kWidth) * sizeof(float), dense, bytes, bytes,
                            kBatch * kKeyHeads, cudaMemcpyDeviceToDevice, context->stream()),
          "copy");
    return cache.data;
  }
  std::vector<float> decode(int64_t capacity, bool is_past_on_device) {
    const int64_t* past =
        upload<int64_t>(*arena, HostTensor({1}, std::vector<int64_t>{kPast}), "past", context->stream()).data;
    KvAppendParams<float> append;
    append.k = on_device(numbers(kBatch * kKeyHeads * kWidth, 3));
    append.v = on_device(numbers(kBatch * kKeyHeads * kWidth, 4));
    append.k_stride = append.v_stride = kKeyHeads * kWidth;
    append.k_cache = cache(capacity, 1);
    append.v_cache = cache(capacity, 2);
    append.batch = kBatch;
    append.length = 1;
    append.kv_heads = kKeyHeads;
    append.width = append.value_width = kWidth;
    append.capacity = capacity;
    AttentionParams<float> p;
    p.q = on_device(numbers(kBatch * kHeads * kWidth, 5));
    p.q_stride = kHeads * kWidth;
    p.q_head_stride = kWidth;
    p.k = append.k_cache;
    p.v = append.v_cache;
    p.batch = kBatch;
    p.length = 1;
    p.heads = kHeads;
    p.kv_heads = kKeyHeads;
    p.width = p.value_width = kWidth;
    p.capacity = capacity;
    p.scale = 0.5f;
    if (is_past_on_device) {
      append.past_on_device = p.past_on_device = past;
    } else {
      append.past = p.past = kPast;
    }
    const Tensor<float> y = allocate<float>(*arena, {kBatch, kHeads, kWidth}, "y");
    p.y = y.data;
    p.workspace = arena->allocate(static_cast<int64_t>(attention_decode_workspace_bytes(p)), "workspace");
    kv_append(append, context->stream());
    attention_decode(p, context->stream());
    const HostTensor host = download(y, "y", context->stream());
    arena->check_guards();
    return {host.values<float>().begin(), host.values<float>().end()};
  }
  std::unique_ptr<Context> context;
  std::unique_ptr<Arena> arena;
};

TEST_F(AttentionOnDevice, DecodeDoesNotDependOnTheCapacity) {
  const std::vector<float> tight = decode(kColumns, false);
  EXPECT_GT(*std::max_element(tight.begin(), tight.end()), 0.01f);
  EXPECT_EQ(decode(kColumns + 1, false), tight);
  EXPECT_EQ(decode(5000, false), tight);
}

TEST_F(AttentionOnDevice, DecodeReadsTheNumberOfColumnsOnTheDevice) {
  EXPECT_EQ(decode(5000, true), decode(kColumns, false));
}

}  // namespace
}  // namespace assay::fast

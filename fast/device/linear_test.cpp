#include "fast/device/linear.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"
#include "fast/device/context.hpp"
#include "fast/device/device.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {
namespace {

TEST(Alignment, IsTheLargestPowerOfTwoUpTo256) {
  EXPECT_EQ(alignment_of(reinterpret_cast<const void*>(uintptr_t{1024})), 256u);
  EXPECT_EQ(alignment_of(reinterpret_cast<const void*>(uintptr_t{1024 + 16})), 16u);
  EXPECT_EQ(alignment_of(reinterpret_cast<const void*>(uintptr_t{1024 + 12})), 4u);
}

class LinearOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
  }
};

// Small whole numbers: every product and sum is exact, so the result must be equal whatever the order.
float value_at(int64_t i, int64_t modulus) { return static_cast<float>((i * 7 + 3) % modulus - modulus / 2); }

void check_shape(int64_t rows, int64_t in, int64_t out, int64_t x_begin, int64_t x_width, int64_t y_begin,
                 int64_t y_width, bool has_bias, bool accumulate) {
  SCOPED_TRACE("rows " + std::to_string(rows) + " in " + std::to_string(in) + " out " + std::to_string(out));
  Context context;
  Arena arena("test", context.memory(), 1 << 20, true);
  HostTensor x(DType::kF32, {rows, x_width}), weight(DType::kF32, {out, in}), bias(DType::kF32, {out}),
      y(DType::kF32, {rows, y_width});
  for (int64_t i = 0; i < x.count(); ++i) x.values<float>()[static_cast<size_t>(i)] = value_at(i, 11);
  for (int64_t i = 0; i < weight.count(); ++i) weight.values<float>()[static_cast<size_t>(i)] = value_at(i, 13);
  for (int64_t i = 0; i < out; ++i) bias.values<float>()[static_cast<size_t>(i)] = value_at(i, 17);
  for (int64_t i = 0; i < y.count(); ++i) y.values<float>()[static_cast<size_t>(i)] = value_at(i, 19);
  const auto up = [&](const HostTensor& host, const char* name) {
    return upload<float>(arena, host, name, context.stream());
  };
  const Tensor<float> x_there = up(x, "x"), weight_there = up(weight, "weight"), bias_there = up(bias, "bias"),
                      y_there = up(y, "y");
  LinearParams p;
  p.x = x_there.data + x_begin;
  p.x_stride = x_width;
  p.weight = weight_there.data;
  p.bias = has_bias ? bias_there.data : nullptr;
  p.y = y_there.data + y_begin;
  p.y_stride = y_width;
  p.rows = rows;
  p.in = in;
  p.out = out;
  p.accumulate = accumulate;
  context.linear(p);
  const HostTensor got = download(y_there, "y", context.stream());
  arena.check_guards();
  EXPECT_EQ(context.kernels(), std::vector<std::string>{"linear_cublaslt_f32@sm_90"});

  int wrong = 0;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < y_width; ++c) {
      double expected = y.at(t * y_width + c);
      const int64_t o = c - y_begin;
      if (o >= 0 && o < out) {
        if (!accumulate) expected = 0;
        if (has_bias) expected += bias.at(o);
        for (int64_t i = 0; i < in; ++i) expected += weight.at(o * in + i) * x.at(t * x_width + x_begin + i);
      }
      if (got.at(t * y_width + c) != expected && ++wrong <= 3)
        ADD_FAILURE() << "[" << t << ", " << c << "] expected " << expected << " got " << got.at(t * y_width + c);
    }
  EXPECT_EQ(wrong, 0);
}

TEST_F(LinearOnDevice, DenseShapes) {
  for (int64_t rows : {1, 2, 7, 64, 65})
    for (int64_t in : {1, 3, 24, 65})
      for (int64_t out : {1, 5, 48, 129}) check_shape(rows, in, out, 0, in, 0, out, false, false);
}

TEST_F(LinearOnDevice, BiasRunsAlongTheOutputs) {
  check_shape(1, 24, 40, 0, 24, 0, 40, true, false);
  check_shape(5, 7, 3, 0, 7, 0, 3, true, false);
  check_shape(66, 96, 130, 0, 96, 0, 130, true, false);
}

TEST_F(LinearOnDevice, SlicesOfRowsAtOddOffsets) {
  check_shape(5, 3, 20, 0, 11, 0, 20, false, false);
  check_shape(5, 3, 20, 5, 11, 3, 27, true, false);
  check_shape(1, 3, 20, 5, 11, 3, 27, false, false);
}

TEST_F(LinearOnDevice, AccumulatesIntoY) {
  check_shape(5, 24, 20, 0, 24, 0, 20, false, true);
  check_shape(5, 24, 20, 0, 24, 0, 20, true, true);
}

TEST_F(LinearOnDevice, OneHandleKeepsPlansAndBiasesApart) {
  Context context;
  Arena arena("test", context.memory(), 1 << 20, true);
  const auto up = [&](Shape shape, const std::vector<float>& values, const char* name) {
    return upload<float>(arena, HostTensor(std::move(shape), values), name, context.stream()).data;
  };
  LinearParams p;
  p.x = up({1, 2}, {1, 2}, "x");
  p.weight = up({2, 2}, {1, 2, 3, 4}, "weight");  // x weight^T = [5, 11]; with weight untransposed it would be [7, 10]
  p.y = allocate<float>(arena, {1, 2}, "y").data;
  p.rows = 1;
  p.in = p.out = p.x_stride = p.y_stride = 2;
  const float* biases[] = {up({2}, {100, 200}, "bias 0"), up({2}, {-1, -2}, "bias 1"), nullptr};
  const float expected[][2] = {{105, 211}, {4, 9}, {5, 11}};
  for (int i = 0; i < 3; ++i) {
    p.bias = biases[i];
    context.linear(p);
    const HostTensor y = download(Matrix{p.y, 1, 2, 2}, {2}, "y", context.stream());
    EXPECT_EQ(y.at(0), expected[i][0]) << "bias " << i;
    EXPECT_EQ(y.at(1), expected[i][1]) << "bias " << i;
  }
}

TEST_F(LinearOnDevice, ComputesInFullFloat32) {
  Context context;
  Arena arena("test", context.memory(), 1 << 20, true);
  const int64_t rows = 64, in = 64, out = 64;
  // 1 + 2^-20 is lost by TF32's 10 bits of mantissa.
  HostTensor x(DType::kF32, {rows, in}), weight(DType::kF32, {out, in});
  for (float& value : x.values<float>()) value = 0;
  for (float& value : weight.values<float>()) value = 1;
  for (int64_t t = 0; t < rows; ++t)
    x.values<float>()[static_cast<size_t>(t * in)] = 1 + 8 * std::numeric_limits<float>::epsilon();
  LinearParams p;
  p.x = upload<float>(arena, x, "x", context.stream()).data;
  p.weight = upload<float>(arena, weight, "weight", context.stream()).data;
  const Tensor<float> y = allocate<float>(arena, {rows, out}, "y");
  p.y = y.data;
  p.rows = rows;
  p.in = p.x_stride = in;
  p.out = p.y_stride = out;
  context.linear(p);
  const HostTensor got = download(y, "y", context.stream());
  for (float value : got.values<float>()) ASSERT_EQ(value, 1 + 8 * std::numeric_limits<float>::epsilon());
}

TEST_F(LinearOnDevice, RefusesWhatItCannotDo) {
  Context context;
  LinearParams p;
  EXPECT_THROW(context.linear(p), InputError);
  p.weight_dtype = DType::kBF16;
  EXPECT_THROW(context.linear(p), UnsupportedError);
}

}  // namespace
}  // namespace assay::fast

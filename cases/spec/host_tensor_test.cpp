#include "cases/spec/host_tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cases/spec/error.hpp"

namespace assay {
namespace {

HostTensor sixteen_bit(DType dtype, std::vector<uint16_t> bits) {
  HostTensor tensor(dtype, {static_cast<int64_t>(bits.size())});
  std::copy(bits.begin(), bits.end(), tensor.values<uint16_t>().begin());
  return tensor;
}

TEST(HostTensor, DefaultIsAbsentAndScalarIsNot) {
  EXPECT_TRUE(HostTensor().absent());
  EXPECT_TRUE(HostTensor(DType::kF32, {3, 0, 2}).absent());
  EXPECT_EQ(HostTensor(DType::kF32, {}).count(), 1);
}

TEST(HostTensor, CopyingCopiesTheBytes) {
  HostTensor first({2, 2}, std::vector<float>{1, 2, 3, 4});
  HostTensor second = first;
  second.values<float>()[3] = 9;
  EXPECT_EQ(first.at(3), 4);
  EXPECT_EQ(second.at(3), 9);
}

TEST(HostTensor, RefusesWrongCountsAndTypes) {
  EXPECT_THROW(HostTensor({2, 2}, std::vector<float>{1, 2, 3}), InputError);
  HostTensor tokens({1, 2}, std::vector<int64_t>{5, 6});
  EXPECT_EQ(tokens.values<int64_t>()[1], 6);
  EXPECT_THROW(tokens.values<float>(), InputError);
  EXPECT_THROW(HostTensor(DType::kF16, {1}).values<float>(), InputError);
}

TEST(HostTensor, RefusesLyingShapes) {
  EXPECT_THROW(element_count({2, -1}), InputError);
  EXPECT_THROW(element_count({int64_t{1} << 32, int64_t{1} << 31}), InputError);
  EXPECT_EQ(element_count({int64_t{1} << 62, 0, 8}), 0);
  EXPECT_THROW(HostTensor(DType::kF64, {int64_t{1} << 61}), InputError);
#ifndef __SANITIZE_ADDRESS__  // its allocator aborts where the standard one throws
  EXPECT_THROW(HostTensor(DType::kU8, {int64_t{1} << 60}), MemoryError);
#endif
}

TEST(HostTensor, HalfPrecisionValues) {
  // IEEE 754 binary16: 1, -2, largest, smallest subnormal, infinity.
  const HostTensor half = sixteen_bit(DType::kF16, {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x7e00, 0x8000});
  EXPECT_EQ(half.at(0), 1.0);
  EXPECT_EQ(half.at(1), -2.0);
  EXPECT_EQ(half.at(2), 65504.0);
  EXPECT_EQ(half.at(3), std::ldexp(1.0, -24));
  EXPECT_TRUE(std::isinf(half.at(4)));
  EXPECT_TRUE(std::isnan(half.at(5)));
  EXPECT_TRUE(std::signbit(half.at(6)));
  const HostTensor brain = sixteen_bit(DType::kBF16, {0x3f80, 0xc040});
  EXPECT_EQ(brain.at(0), 1.0);
  EXPECT_EQ(brain.at(1), -3.0);
}

TEST(HostTensor, NamesOfDTypes) {
  EXPECT_EQ(dtype_from_name("bfloat16"), DType::kBF16);
  EXPECT_EQ(safetensors_name(DType::kU8), "U8");
  EXPECT_EQ(size_of(DType::kF16), 2u);
  EXPECT_THROW(dtype_from_name("float8"), InputError);
}

TEST(HostTensor, Coordinates) {
  EXPECT_EQ(coordinates(0, {}), std::vector<int64_t>{});
  EXPECT_EQ(coordinates(23, {2, 3, 4}), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(coordinates(6, {2, 3, 4}), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
}

}  // namespace
}  // namespace assay

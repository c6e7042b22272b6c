#include "reference/ops/nf4.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"

namespace assay::reference {
namespace {

// What bitsandbytes 0.50.2 answered on a CPU (torch 2.13.0, one thread): hexadecimal bytes where they are few, else the
// first 16 digits of their sha256.
struct Recorded {
  std::string codes;
  std::vector<float> absmax;              // of one quantisation; few blocks only
  std::string absmax_digest;              // else
  std::string absmax_codes;               // of two
  std::vector<float> nested_absmax;       //
  float offset;                           //
  std::string values, values_from_codes;  // dequantised: once, twice quantised
};

std::string hex(std::span<const std::byte> bytes) {
  static const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<int>(byte) >> 4];
    text += digits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

std::string brief(const HostTensor& tensor, size_t length) {
  const std::string text = hex(tensor.bytes());
  return text.size() == length ? text : sha256(tensor.bytes()).substr(0, 16);
}

std::vector<uint32_t> bits(std::span<const float> values) {
  std::vector<uint32_t> result;
  for (const float value : values) result.push_back(std::bit_cast<uint32_t>(value));
  return result;
}

at::Tensor tensor_of(std::vector<float> values) {
  return at::tensor(values, at::kFloat).reshape({static_cast<int64_t>(values.size())});
}

// Values of many sizes, each block of 64 of another scale.
std::vector<float> pattern(int64_t n) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(
        std::ldexp(static_cast<float>((i * 7919 + 13) % 2001 - 1000) / 1000.0F, static_cast<int>(i / 64 % 5) - 2));
  return values;
}

void expect_recorded(const std::string& name, const std::vector<float>& values, const Recorded& recorded) {
  SCOPED_TRACE(name);
  const Shape shape{static_cast<int64_t>(values.size())};
  const Nf4Weight once = quantize_nf4(tensor_of(values), false), twice = quantize_nf4(tensor_of(values), true);
  EXPECT_EQ(brief(once.codes, recorded.codes.size()), recorded.codes);
  EXPECT_EQ(hex(twice.codes.bytes()), hex(once.codes.bytes()));
  if (recorded.absmax_digest.empty()) {
    EXPECT_EQ(bits(once.absmax.values<float>()), bits(recorded.absmax));
  } else {
    EXPECT_EQ(sha256(once.absmax.bytes()).substr(0, 16), recorded.absmax_digest);
  }
  EXPECT_EQ(brief(twice.absmax, recorded.absmax_codes.size()), recorded.absmax_codes);
  EXPECT_EQ(bits(twice.nested_absmax.values<float>()), bits(recorded.nested_absmax));
  EXPECT_EQ(bits(twice.offset.values<float>()), bits({&recorded.offset, 1}));
  EXPECT_EQ(sha256(dequantized(once, shape).bytes()).substr(0, 16), recorded.values);
  EXPECT_EQ(sha256(dequantized(twice, shape).bytes()).substr(0, 16), recorded.values_from_codes);
}

TEST(Nf4, SizesAroundABlock) {
  expect_recorded("one element", {-0.3F},
                  {"07", {0x1.333334p-2F}, "", "00", {0.0F}, 0x1.333334p-2F, "7789e3a0f83ccd29", "7789e3a0f83ccd29"});
  expect_recorded("63", pattern(63),
                  {"0feeeddcba98765433221100ffeeedcbba98665432211100ffeeddcba9876547",
                   {0x1.f9581p-3F},
                   "",
                   "00",
                   {0.0F},
                   0x1.f9581p-3F,
                   "5c3f7885b9c4654f",
                   "5c3f7885b9c4654f"});
  expect_recorded("64", pattern(64),
                  {"0feeeddcba98765433221100ffeeedcbba98665432211100ffeeddcba9876543",
                   {0x1.f9581p-3F},
                   "",
                   "00",
                   {0.0F},
                   0x1.f9581p-3F,
                   "331f7cf2497e607e",
                   "331f7cf2497e607e"});
  expect_recorded("65", pattern(65),
                  {"0feeeddcba98765433221100ffeeedcbba98665432211100ffeeddcba987654307",
                   {0x1.f9581p-3F, 0x1.b22d0ep-3F},
                   "",
                   "ff00",
                   {0x1.1cac1p-6F},
                   0x1.d5c29p-3F,
                   "17967dd801dcfcc2",
                   "9dea70eccd8c5dab"});
  expect_recorded(
      "130", pattern(130),
      {"0feeeddcba98765433221100ffeeedcbba98665432211100ffeeddcba98765433221100ffeeedccba98765432211100ffeeddc"
       "ba98765443221100ffeeedccbafb",
       {0x1.f9581p-3F, 0x1.fa5e36p-2F, 0x1.1cac08p-3F},
       "",
       "36ff10",
       {0x1.9bd194p-3F},
       0x1.2c756cp-2F,
       "7e94b252c3e142cd",
       "a9b3f460ba1f905e"});
}

TEST(Nf4, ManyBlocksOfScales) {
  expect_recorded("450", pattern(450),
                  {"cad7da0aa657b483",
                   {},
                   "091d1c360b303c9e",
                   "2f354cccff2f3547",
                   {0x1.651cacp+1F},
                   0x1.2c8f5ep+0F,
                   "6d1aede7346aa63d",
                   "43e6e5419a6ee756"});
  expect_recorded("16385", pattern(16385),
                  {"d00552774d0c86fa",
                   {},
                   "2b9e267a058b78ee",
                   "b48a959895e24f42",
                   {0x1.3c8f28p+1F, 0x1.0fb6aep+0F},
                   0x1.86e1bp+0F,
                   "5c6103671e3b69c0",
                   "c3fef3a79a379653"});
  expect_recorded("70401", pattern(70401),
                  {"0904b29de795b81d",
                   {},
                   "25552fc9ecce85cc",
                   "f54723a638d85f8c",
                   {0x1.3b96fcp+1F, 0x1.3b96fcp+1F, 0x1.3b13e8p+1F, 0x1.3b96fcp+1F, 0x1.3b96fcp+1F},
                   0x1.88d20ap+0F,
                   "d7e872ffc9d2404d",
                   "a50eec01b29c3226"});
}

// The sum behind the offset has runs within runs: 10,000 scales use all of its levels.
TEST(Nf4, OffsetOfTenThousandBlocks) {
  const Nf4Weight twice = quantize_nf4(tensor_of(pattern(640'000)), true);
  EXPECT_EQ(twice.offset.values<float>()[0], 0x1.893402p+0F);
  EXPECT_EQ(sha256(twice.absmax.bytes()).substr(0, 16), "110b75e44e30c499");
  EXPECT_EQ(sha256(twice.nested_absmax.bytes()).substr(0, 16), "b1f8b8a105bc63e4");
}

TEST(Nf4, ZerosAndSubnormals) {
  const Recorded zeros{std::string(66, '7'), {0.0F, 1e-38F},    "", "00ff", {0x1.b38fb8p-128F}, 0x1.b38fb8p-128F,
                       "9c0095c04ef53d9d",   "9c0095c04ef53d9d"};
  expect_recorded("zeros", std::vector<float>(65, 0.0F), zeros);
  expect_recorded("negative zeros", std::vector<float>(65, -0.0F), zeros);
  expect_recorded("subnormal", std::vector<float>(66, 1e-40F),
                  {std::string(66, '7'),
                   {0x1.16c2p-133F, 1e-38F},
                   "",
                   "00ff",
                   {0x1.af34bp-128F},
                   0x1.b7eacp-128F,
                   "44b8aa4d28701168",
                   "44b8aa4d28701168"});
}

// Each midpoint of two levels, its neighbour above and its neighbour below.
TEST(Nf4, TiesGoToTheLowerLevel) {
  std::vector<float> values(64, 0.0F);
  values[0] = 1;
  for (size_t i = 0; i < 15; ++i) {
    const float middle = (nf4_levels()[i] + nf4_levels()[i + 1]) / 2;
    values[1 + i] = middle;
    values[16 + i] = std::nextafter(middle, 2.0F);
    values[31 + i] = std::nextafter(middle, -2.0F);
  }
  values[46] = -1;
  expect_recorded("ties", values,
                  {"f0123456789abcde123456789abcdef0123456789abcde077777777777777777",
                   {1.0F},
                   "",
                   "00",
                   {0.0F},
                   1.0F,
                   "1027f9c6b2466639",
                   "1027f9c6b2466639"});
}

TEST(Nf4, PartsOfAnotherWeightAreRefused) {
  Nf4Weight weight = quantize_nf4(tensor_of(pattern(130)), true);
  EXPECT_EQ(nf4_problem(weight, 130), "");
  EXPECT_NE(nf4_problem(weight, 131).find("codes should be uint8 [66], is uint8 [65]"), std::string::npos);
  EXPECT_THROW(dequantized(weight, {131}), InputError);
  weight.offset = {};
  EXPECT_NE(nf4_problem(weight, 130).find("offset"), std::string::npos);
}

}  // namespace
}  // namespace assay::reference

#include "fast/models/arguments.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "cases/spec/error.hpp"

namespace assay::fast {
namespace {

HostTensor host_mask(Shape shape, const std::vector<uint8_t>& values) {
  HostTensor mask(DType::kU8, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) mask.values<uint8_t>()[i] = values[i];
  return mask;
}

std::string refusal(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckCall, ReturnsTheColumns) {
  Call call;
  call.tokens = HostTensor({2, 3}, std::vector<int64_t>{0, 1, 2, 3, 4, 9});
  EXPECT_EQ(check_call(call, 2, 0, 10, 0), 3);
  EXPECT_EQ(check_call(call, 2, 5, 10, 8), 3);
}

TEST(CheckCall, TokenOutsideTheVocabularyIsNamedByRowAndColumn) {
  Call call;
  for (int64_t wrong : {int64_t{-1}, int64_t{9}, INT64_MAX, INT64_MIN}) {
    call.tokens = HostTensor({2, 3}, std::vector<int64_t>{0, 1, 2, 3, wrong, 5});
    const std::string text = refusal([&] { check_call(call, 2, 0, 9, 0); });
    EXPECT_NE(text.find("tokens[1, 1]"), std::string::npos) << text;
    EXPECT_NE(text.find(std::to_string(wrong)), std::string::npos) << text;
  }
}

TEST(CheckCall, TokenShapeAndDtype) {
  Call call;
  EXPECT_NE(refusal([&] { check_call(call, 1, 0, 9, 0); }), "");
  call.tokens = HostTensor(DType::kI64, {3});
  EXPECT_NE(refusal([&] { check_call(call, 1, 0, 9, 0); }).find("[3]"), std::string::npos);
  call.tokens = HostTensor(DType::kI64, {2, 3});
  EXPECT_NE(refusal([&] { check_call(call, 1, 0, 9, 0); }), "");
  call.tokens = HostTensor(DType::kI64, {1, 0});
  EXPECT_NE(refusal([&] { check_call(call, 1, 0, 9, 0); }), "");
  call.tokens = HostTensor(DType::kI32, {1, 3});
  EXPECT_NE(refusal([&] { check_call(call, 1, 0, 9, 0); }).find("int32"), std::string::npos);
}

TEST(CheckCall, StaticLimit) {
  Call call;
  call.tokens = HostTensor(DType::kI64, {1, 3});
  EXPECT_EQ(check_call(call, 1, 5, 9, 8), 3);
  EXPECT_NE(refusal([&] { check_call(call, 1, 6, 9, 8); }).find("limit of 8"), std::string::npos);
}

TEST(CheckCall, MaskCoversPastAndNewColumns) {
  Call call;
  call.tokens = HostTensor(DType::kI64, {1, 2});
  call.mask = host_mask({1, 4}, {0, 1, 1, 1});
  EXPECT_EQ(check_call(call, 1, 2, 9, 0), 2);
  EXPECT_NE(refusal([&] { check_call(call, 1, 1, 9, 0); }).find("expected [1, 3]"), std::string::npos);
}

TEST(CheckCall, OnlyLeftPadding) {
  Call call;
  call.tokens = HostTensor(DType::kI64, {2, 3});
  call.mask = host_mask({2, 3}, {0, 0, 1, 1, 1, 0});
  const std::string text = refusal([&] { check_call(call, 2, 0, 9, 0); });
  EXPECT_NE(text.find("mask[1, 2]"), std::string::npos) << text;
  call.mask = host_mask({2, 3}, {0, 0, 1, 0, 2, 2});
  EXPECT_NE(refusal([&] { check_call(call, 2, 0, 9, 0); }).find("mask[1, 1]"), std::string::npos);
}

TEST(Padding, IsTheZerosOfEachRow) {
  Call call;
  call.tokens = HostTensor(DType::kI64, {2, 2});
  EXPECT_EQ(padding_of(call, 2), (std::vector<int64_t>{0, 0}));
  call.mask = host_mask({2, 3}, {0, 0, 1, 1, 1, 1});
  EXPECT_EQ(padding_of(call, 2), (std::vector<int64_t>{2, 0}));
}

TEST(Padding, MasksAndPositionsOfTheNewColumns) {
  EXPECT_EQ(mask_of(std::vector<int64_t>{2, 0}, 1, 2), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(positions_of({2, 0}, 1, 3), (std::vector<int64_t>{0, 0, 1, 1, 2, 3}));
}

TEST(CheckReorder, EachSourceIsARow) {
  EXPECT_NO_THROW(check_reorder({1, 1, 0}, 3));
  EXPECT_NE(refusal([] { check_reorder({0, 1}, 3); }), "");
  EXPECT_NE(refusal([] { check_reorder({0, 3, 1}, 3); }).find("row 1"), std::string::npos);
  EXPECT_NE(refusal([] { check_reorder({-1, 0, 1}, 3); }).find("row 0"), std::string::npos);
}

TEST(CheckSessionOptions, RowsAndLimit) {
  SessionOptions options;
  EXPECT_NO_THROW(check_session_options(options));
  options.rows = 0;
  EXPECT_NE(refusal([&] { check_session_options(options); }), "");
  options.rows = 1;
  options.cache = CacheKind::kStatic;
  EXPECT_NE(refusal([&] { check_session_options(options); }).find("limit"), std::string::npos);
}

}  // namespace
}  // namespace assay::fast

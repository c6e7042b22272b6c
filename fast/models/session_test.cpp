// What must not depend on how a sequence is cut into calls, and what reset and reorder leave.
#include "fast/models/session.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "cases/spec/error.hpp"
#include "fast/models/forms.hpp"
#include "fast/models/testing/session_on_device.hpp"

namespace assay::fast {
namespace {

constexpr double kClose = 1e-3;  // of logits of about 10

TEST_P(SessionOnDevice, EveryCutIsTheWhole) {
  const int64_t length = 19;
  const Trace whole = start(2, CacheKind::kNone)->forward(call(2, 0, length));
  const std::vector<std::vector<int64_t>> cuts = {{19}, {1, 18}, {9, 10}, {3, 1, 1, 8, 6}, std::vector<int64_t>(19, 1)};
  // By call, every op in its first form, every op in its last.
  std::vector<std::map<std::string, std::string>> forms(3);
  for (const auto& [op, names] : op_forms()) {
    forms[1][op] = names.front();
    forms[2][op] = names.back();
  }
  for (CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic})
    for (const auto& form : forms)
      for (const auto& cut : cuts) {
        const auto session = start(2, cache, form, cache == CacheKind::kStatic ? length : 0);
        for (int64_t columns : cut) {
          const int64_t first = session->length();
          const Trace part = session->forward(call(2, first, columns));
          for (int64_t row = 0; row < 2; ++row)
            for (int64_t t = 0; t < columns; ++t) ASSERT_LT(difference(whole, row, first + t, part, row, t), kClose);
        }
        EXPECT_EQ(session->length(), length);
      }
}

TEST_P(SessionOnDevice, CaptureDoesNotChangeTheLogits) {
  Call quiet = call(2, 0, 9);
  quiet.capture = false;
  const auto session = start(2, CacheKind::kNone);
  const Trace with = session->forward(call(2, 0, 9)), without = session->forward(quiet);
  ASSERT_EQ(without.probes.size(), 1u);
  for (int64_t t = 0; t < 9; ++t) EXPECT_EQ(difference(with, 1, t, without, 1, t), 0);
}

TEST_P(SessionOnDevice, LeftPaddingChangesNoRealColumn) {
  const int64_t length = 6, pad = 3;
  Call padded = call(2, 0, length + pad);
  padded.mask = HostTensor(DType::kU8, {2, length + pad});
  const Call alone = call(1, 0, length);
  for (int64_t t = 0; t < length + pad; ++t) {
    padded.mask.values<uint8_t>()[static_cast<size_t>(t)] = t >= pad;
    padded.mask.values<uint8_t>()[static_cast<size_t>(length + pad + t)] = 1;
    if (t >= pad)
      padded.tokens.values<int64_t>()[static_cast<size_t>(t)] =
          alone.tokens.values<int64_t>()[static_cast<size_t>(t - pad)];
  }
  const Trace expected = start(1, CacheKind::kNone)->forward(alone);
  const Trace whole = start(2, CacheKind::kDynamic)->forward(padded);
  for (int64_t t = 0; t < length; ++t) EXPECT_LT(difference(whole, 0, pad + t, expected, 0, t), kClose) << t;

  // Column by column, padding included.
  const auto session = start(2, CacheKind::kDynamic);
  for (int64_t t = 0; t < length + pad; ++t) {
    Call step;
    step.tokens = HostTensor(DType::kI64, {2, 1});
    step.mask = HostTensor(DType::kU8, {2, t + 1});
    for (int64_t b = 0; b < 2; ++b) {
      step.tokens.values<int64_t>()[static_cast<size_t>(b)] =
          padded.tokens.values<int64_t>()[static_cast<size_t>(b * (length + pad) + t)];
      for (int64_t i = 0; i <= t; ++i)
        step.mask.values<uint8_t>()[static_cast<size_t>(b * (t + 1) + i)] =
            padded.mask.values<uint8_t>()[static_cast<size_t>(b * (length + pad) + i)];
    }
    const Trace part = session->forward(step);
    if (t < pad) continue;
    EXPECT_LT(difference(part, 0, 0, expected, 0, t - pad), kClose) << t;
  }
}

TEST_P(SessionOnDevice, ResetLeavesNoTrace) {
  const auto used = start(1, CacheKind::kDynamic), fresh = start(1, CacheKind::kDynamic);
  used->forward(call(1, 40, 9));
  used->reset();
  EXPECT_EQ(used->length(), 0);
  for (const NamedTensor& state : used->states())
    for (float value : state.value.values<float>()) ASSERT_EQ(value, 0) << state.name;
  const Trace a = used->forward(call(1, 0, 5)), b = fresh->forward(call(1, 0, 5));
  for (int64_t t = 0; t < 5; ++t) EXPECT_EQ(difference(a, 0, t, b, 0, t), 0);
}

TEST_P(SessionOnDevice, ReorderMovesEveryState) {
  const auto session = start(3, CacheKind::kDynamic);
  session->forward(call(3, 0, 5));
  const std::vector<NamedTensor> before = session->states();
  const std::vector<int64_t> source = {2, 0, 0};
  session->reorder(source);
  const std::vector<NamedTensor> after = session->states();
  for (size_t i = 0; i < before.size(); ++i) {
    const int64_t row = before[i].value.count() / 3;
    for (int64_t b = 0; b < 3; ++b)
      for (int64_t k = 0; k < row; ++k)
        ASSERT_EQ(after[i].value.at(b * row + k), before[i].value.at(source[static_cast<size_t>(b)] * row + k));
  }
  EXPECT_THROW(session->reorder({0, 1}), InputError);
  EXPECT_THROW(session->crop(1), UnsupportedError);
}

TEST_P(SessionOnDevice, AModelMayGoBeforeItsSession) {
  const auto session = start(1, CacheKind::kDynamic);
  model.reset();
  EXPECT_NO_THROW(session->forward(call(1, 0, 3)));
}

INSTANTIATE_TEST_SUITE_P(Families, SessionOnDevice, testing::ValuesIn(network_names()),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace assay::fast

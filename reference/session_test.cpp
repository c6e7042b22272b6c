#include "reference/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "cases/spec/model_spec.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Row = std::vector<int64_t>;

constexpr double kNoise = 3e-5;  // float32 on logits of size 10
const Row kPrompt = {10, 35, 42, 45, 30, 17, 12, 37, 20, 51, 3, 8, 44, 29, 1, 50, 7};

Row slice(const Row& row, size_t first, size_t count) {
  return Row(row.begin() + static_cast<std::ptrdiff_t>(first),
             row.begin() + static_cast<std::ptrdiff_t>(first + count));
}

double difference_of_states(const Session& a, const Session& b) {
  const std::vector<NamedTensor> left = a.states(), right = b.states();
  double largest = left.size() == right.size() ? 0 : 1e9;
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i)
    largest = std::max(largest, difference(to_aten(left[i].value), to_aten(right[i].value)));
  return largest;
}

class SessionTest : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Model> model_ = load(GetParam());

  std::unique_ptr<Session> start(CacheKind cache, int64_t rows = 1, std::map<std::string, std::string> forms = {}) {
    return model_->start({.rows = rows, .cache = cache, .limit = 32, .forms = std::move(forms)});
  }
  at::Tensor whole(const Row& row) { return logits(*start(CacheKind::kNone), {row}); }
};

INSTANTIATE_TEST_SUITE_P(Configs, SessionTest,
                         testing::Values("mamba/tiny", "mamba/awkward", "mamba2/tiny", "mamba2/awkward"),
                         [](const auto& case_info) {
                           std::string name = case_info.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

TEST_P(SessionTest, ProbesAndStatesAreThoseOfTheModelsTable) {
  const ModelConfig config = repository_config(GetParam());
  const auto session = start(CacheKind::kDynamic, 2);
  Call call;
  call.tokens = tokens({slice(kPrompt, 0, 5), slice(kPrompt, 5, 5)});
  std::vector<NamedTensor> got = session->forward(call).probes;
  for (NamedTensor& state : session->states()) got.push_back(std::move(state));

  const std::vector<ProbeSpec> expected = model_spec(config.model).probes(config);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    Shape shape = expected[i].is_state ? Shape{2} : Shape{2, 5};
    shape.insert(shape.end(), expected[i].shape.begin(), expected[i].shape.end());
    EXPECT_EQ(got[i].value.shape(), shape) << expected[i].name;
    EXPECT_EQ(got[i].value.dtype(), DType::kF32);
  }
}

TEST_P(SessionTest, EverySplitInEveryFormEqualsTheWhole) {
  const at::Tensor expected = whole(kPrompt);
  const auto once = start(CacheKind::kDynamic);
  logits(*once, {kPrompt});
  for (const auto& [op, forms] : known_forms())
    for (const std::string& form : forms)
      for (const size_t step : {size_t{1}, size_t{2}, size_t{3}, size_t{8}, kPrompt.size()}) {
        const auto session = start(CacheKind::kDynamic, 1, {{op, form}});
        std::vector<at::Tensor> parts;
        for (size_t first = 0; first < kPrompt.size(); first += step)
          parts.push_back(logits(*session, {slice(kPrompt, first, std::min(step, kPrompt.size() - first))}));
        EXPECT_LT(difference(at::cat(parts, 1), expected), kNoise) << op << " " << form << " by " << step;
        EXPECT_LT(difference_of_states(*session, *once), kNoise) << op << " " << form << " by " << step;
        EXPECT_EQ(session->length(), static_cast<int64_t>(kPrompt.size()));
      }
}

TEST_P(SessionTest, LeftPaddedRowsEqualTheSameRowsAlone) {
  // Pads of 0, 3 and 6 columns, cut inside the padding, at its end and behind it.
  const Row a = slice(kPrompt, 0, 9), b = slice(kPrompt, 5, 6), c = slice(kPrompt, 11, 3);
  Row padded_b(3, 2), padded_c(6, 4);
  padded_b.insert(padded_b.end(), b.begin(), b.end());
  padded_c.insert(padded_c.end(), c.begin(), c.end());
  const std::vector<int> mask_a(9, 1), mask_b = {0, 0, 0, 1, 1, 1, 1, 1, 1}, mask_c = {0, 0, 0, 0, 0, 0, 1, 1, 1};
  const auto cut = [](const std::vector<int>& row, size_t count) {
    return std::vector<int>(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const size_t split : {size_t{2}, size_t{6}, size_t{8}}) {
    const auto session = start(CacheKind::kDynamic, 3);
    const at::Tensor first =
        logits(*session, {slice(a, 0, split), slice(padded_b, 0, split), slice(padded_c, 0, split)},
               mask({cut(mask_a, split), cut(mask_b, split), cut(mask_c, split)}));
    const at::Tensor second = logits(
        *session, {slice(a, split, 9 - split), slice(padded_b, split, 9 - split), slice(padded_c, split, 9 - split)},
        mask({mask_a, mask_b, mask_c}));
    const at::Tensor got = at::cat({first, second}, 1);
    EXPECT_LT(difference(got.narrow(0, 0, 1), whole(a)), kNoise);
    EXPECT_LT(difference(got.narrow(0, 1, 1).narrow(1, 3, 6), whole(b)), kNoise);
    EXPECT_LT(difference(got.narrow(0, 2, 1).narrow(1, 6, 3), whole(c)), kNoise);
  }
}

TEST_P(SessionTest, APaddedRowMovesWithoutItsMask) {
  Row padded(3, 2);
  padded.insert(padded.end(), kPrompt.begin(), kPrompt.end());
  const at::Tensor unmasked = logits(*start(CacheKind::kNone), {padded});
  EXPECT_GT(difference(unmasked.narrow(1, 3, 17), whole(kPrompt)), 0.1);
}

TEST_P(SessionTest, WithoutACacheEachCallIsAWholeSequence) {
  const auto session = start(CacheKind::kNone);
  const at::Tensor first = logits(*session, {kPrompt}), second = logits(*session, {kPrompt});
  EXPECT_EQ(difference(first, second), 0);
  EXPECT_TRUE(session->states().empty());
  EXPECT_EQ(session->length(), 0);
}

TEST_P(SessionTest, ResetLeavesNoTraceOfTheLastRequest) {
  for (const CacheKind cache : {CacheKind::kDynamic, CacheKind::kStatic}) {
    const auto used = start(cache), fresh = start(cache);
    logits(*used, {slice(kPrompt, 4, 9)});
    used->reset();
    EXPECT_EQ(used->length(), 0);
    EXPECT_EQ(difference(logits(*used, {kPrompt}), logits(*fresh, {kPrompt})), 0);
    EXPECT_EQ(difference_of_states(*used, *fresh), 0);
  }
}

TEST_P(SessionTest, ReorderMovesTheRowsStates) {
  const Row a = slice(kPrompt, 0, 5), b = slice(kPrompt, 5, 5), next = {9};
  const auto reordered = start(CacheKind::kDynamic, 2), direct = start(CacheKind::kDynamic, 2);
  logits(*reordered, {a, b});
  reordered->reorder({1, 1});
  logits(*direct, {b, b});
  EXPECT_LT(difference(logits(*reordered, {next, {4}}), logits(*direct, {next, {4}})), kNoise);
  EXPECT_LT(difference_of_states(*reordered, *direct), kNoise);
  expect_parts(refusal<InputError>([&] { reordered->reorder({0, 2}); }), {"row 1", "row 2"});
  expect_parts(refusal<InputError>([&] { reordered->reorder({0}); }), {"1 rows", "2"});
}

TEST_P(SessionTest, StaticCacheEqualsDynamicBitForBitAndKeepsItsLimit) {
  const auto fixed = start(CacheKind::kStatic), grown = start(CacheKind::kDynamic);
  for (const size_t first : {size_t{0}, size_t{5}, size_t{6}}) {
    const Row part = slice(kPrompt, first, first == 0 ? 5 : 1);
    EXPECT_EQ(difference(logits(*fixed, {part}), logits(*grown, {part})), 0);
  }
  EXPECT_EQ(difference_of_states(*fixed, *grown), 0);
  // 7 columns are held: 25 more fill the limit of 32, 26 do not fit and change nothing.
  expect_parts(refusal<InputError>([&] { logits(*fixed, {Row(26, 1)}); }), {"33", "32"});
  EXPECT_EQ(difference_of_states(*fixed, *grown), 0);
  EXPECT_EQ(fixed->length(), 7);
  logits(*fixed, {Row(25, 1)});
  EXPECT_EQ(fixed->length(), 32);
}

TEST_P(SessionTest, RefusesCallsThatDoNotFit) {
  const auto session = start(CacheKind::kDynamic, 2);
  const auto refused = [&](const std::vector<Row>& rows, HostTensor padding = {}) {
    return refusal<InputError>([&] { logits(*session, rows, std::move(padding)); });
  };
  expect_parts(refused({{1, 2, 3}, {4, 99, 6}}), {"[1, 1]", "99", "[0, 5"});
  expect_parts(refused({{1, -1}, {4, 5}}), {"[0, 1]", "-1"});
  expect_parts(refused({{1, 2}}), {"[1, 2]", "2 row"});
  expect_parts(refused({{1, 2, 3}, {4, 5, 6}}, mask({{1, 1, 1}, {0, 1, 0}})), {"[1, 2]", "left"});
  expect_parts(refused({{1, 2}, {4, 5}}, mask({{1, 1, 1}, {0, 1, 1}})), {"[2, 3]", "[2, 2]"});
  expect_parts(refused({{1, 2}, {4, 5}}, mask({{1, 1}, {0, 3}})), {"[1, 1]", "3"});
  expect_parts(refused({{1, 2}, {4, 5}}, HostTensor(DType::kI64, {2, 2})), {"int64", "uint8"});
  Call call;
  call.tokens = HostTensor(DType::kI32, {2, 2});
  expect_parts(refusal<InputError>([&] { session->forward(call); }), {"int32", "int64"});
  EXPECT_EQ(session->length(), 0);
  expect_parts(refusal<UnsupportedError>([&] { session->crop(0); }), {"recurrent"});
}

TEST_P(SessionTest, RefusesUnknownForms) {
  const auto refused = [&](const char* op, const char* form) {
    return refusal<UnsupportedError>([&] { start(CacheKind::kDynamic, 1, {{op, form}}); });
  };
  expect_parts(refused("ssd", "diagonal"), {"ssd", "diagonal", "recurrent, chunked"});
  expect_parts(refused("attention", "eager"), {"attention", "ssd"});
  expect_parts(refusal<InputError>([&] { start(CacheKind::kDynamic, 0); }), {"0 rows"});
  expect_parts(refusal<InputError>([&] { model_->start({.cache = CacheKind::kStatic}); }), {"limit"});
}

TEST_P(SessionTest, WithoutCaptureOnlyLogitsAreKept) {
  Call call;
  call.tokens = tokens({kPrompt});
  call.capture = false;
  const Trace trace = start(CacheKind::kNone)->forward(call);
  ASSERT_EQ(trace.probes.size(), 1u);
  EXPECT_EQ(trace.probes[0].name, "logits");
}

// mamba2/awkward has time_step_limit [0.05, 0.6], and softplus alone goes beyond both.
TEST(Session, Mamba2LimitsDtInPrefillAndInSingleSteps) {
  const auto model = load("mamba2/awkward");
  for (const size_t step : {kPrompt.size(), size_t{1}}) {
    const auto session = model->start({});
    double least = 1e9, most = 0;
    for (size_t first = 0; first < kPrompt.size(); first += step) {
      Call call;
      call.tokens = tokens({slice(kPrompt, first, step)});
      const at::Tensor dt = to_aten(*session->forward(call).find("layers.0.mixer.dt"));
      least = std::min(least, dt.min().item<double>());
      most = std::max(most, dt.max().item<double>());
    }
    EXPECT_FLOAT_EQ(static_cast<float>(least), 0.05F) << "calls of " << step;
    EXPECT_FLOAT_EQ(static_cast<float>(most), 0.6F) << "calls of " << step;
  }
}

}  // namespace
}  // namespace assay::reference

// Sessions of every family's tiny config on the device: what must not depend on how a sequence is cut into calls.
#include "fast/models/session.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "fast/device/device.hpp"
#include "fast/models/forms.hpp"

namespace assay::fast {
namespace {

ModelConfig tiny(const std::string& model) {
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases/models" / model / "tiny.config.json");
}

// A source with one tensor changed, added or left out.
class ChangedWeights : public WeightSource {
 public:
  ChangedWeights(std::shared_ptr<const WeightSource> base, std::string name, HostTensor value)
      : base_(std::move(base)), name_(std::move(name)), value_(std::move(value)) {}
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const std::string& name : base_->names())
      if (name != name_) names.push_back(name);
    if (!value_.absent()) names.push_back(name_);
    return names;
  }
  bool has(const std::string& name) const override { return name == name_ ? !value_.absent() : base_->has(name); }
  HostTensor read(const std::string& name) const override { return name == name_ ? value_ : base_->read(name); }

 private:
  std::shared_ptr<const WeightSource> base_;
  std::string name_;
  HostTensor value_;
};

class SessionOnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    config = tiny(GetParam());
    model = load_model(config, *open_weights(config), {});
    vocabulary = model_spec(config.model).vocabulary(config);
  }
  std::unique_ptr<Session> start(int64_t rows, CacheKind cache, std::map<std::string, std::string> forms = {},
                                 int64_t limit = 0) {
    SessionOptions options;
    options.rows = rows;
    options.cache = cache;
    options.forms = std::move(forms);
    options.limit = limit;
    return model->start(options);
  }
  // Columns [first, first + columns) of a fixed text, another one in each row.
  Call call(int64_t rows, int64_t first, int64_t columns) const {
    Call call;
    call.tokens = HostTensor(DType::kI64, {rows, columns});
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t t = 0; t < columns; ++t)
        call.tokens.values<int64_t>()[static_cast<size_t>(b * columns + t)] =
            ((first + t) * (first + t + 5) * 3 + 11 * b + 1) % vocabulary;
    return call;
  }
  // Largest difference of logits: row, column of `whole` against row, column of `part`.
  double difference(const Trace& whole, int64_t row, int64_t column, const Trace& part, int64_t part_row,
                    int64_t part_column) const {
    const HostTensor &a = *whole.find("logits"), &b = *part.find("logits");
    double largest = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      const double d = std::abs(a.at((row * a.shape()[1] + column) * vocabulary + v) -
                                b.at((part_row * b.shape()[1] + part_column) * vocabulary + v));
      largest = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(largest, d);
    }
    return largest;
  }
  ModelConfig config;
  std::unique_ptr<Model> model;
  int64_t vocabulary = 0;
};

constexpr double kClose = 1e-3;  // of logits of about 10

TEST_P(SessionOnDevice, ProbesHaveTheTablesNamesShapesAndOrder) {
  const auto session = start(2, CacheKind::kDynamic);
  const Trace trace = session->forward(call(2, 0, 5));
  std::vector<std::string> expected, got;
  for (const ProbeSpec& spec : model_spec(config.model).probes(config)) {
    if (spec.is_state) continue;
    expected.push_back(spec.name);
    Shape shape = {2, 5};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    const HostTensor* probe = trace.find(spec.name);
    if (probe == nullptr) continue;
    EXPECT_EQ(probe->shape(), shape) << spec.name;
    for (float value : probe->values<float>()) ASSERT_TRUE(std::isfinite(value)) << spec.name;
  }
  for (const NamedTensor& probe : trace.probes) got.push_back(probe.name);
  EXPECT_EQ(got, expected);
}

TEST_P(SessionOnDevice, StatesHaveTheTablesNamesAndShapes) {
  const auto session = start(3, CacheKind::kDynamic);
  session->forward(call(3, 0, 2));
  const std::vector<NamedTensor> states = session->states();
  size_t expected = 0;
  for (const ProbeSpec& spec : model_spec(config.model).probes(config)) {
    if (!spec.is_state) continue;
    ++expected;
    Shape shape = {3};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    if (!spec.follows.empty()) shape = {3, spec.shape[0], 2, spec.shape[1]};
    const auto state =
        std::find_if(states.begin(), states.end(), [&](const NamedTensor& one) { return one.name == spec.name; });
    ASSERT_NE(state, states.end()) << spec.name;
    EXPECT_EQ(state->value.shape(), shape) << spec.name;
  }
  EXPECT_EQ(expected, states.size());
}

// A kernel may hold an op between others.
TEST_P(SessionOnDevice, OneKernelAtLeastForEachOp) {
  const std::multimap<std::string, std::string> held_by = {{"causal_conv1d", "short_conv"},
                                                           {"gate", "short_conv"},
                                                           {"gate", "silu_gate"},
                                                           {"gated_rms_norm", "rms_norm_gated"}};
  const auto session = start(1, CacheKind::kDynamic);
  for (int64_t columns : {7, 1}) {
    session->forward(call(1, session->length(), columns));
    for (const std::string& op : model_spec(config.model).ops(config)) {
      std::vector<std::string> names = {op};
      const auto [begin, end] = held_by.equal_range(op);
      for (auto held = begin; held != end; ++held) names.push_back(held->second);
      bool is_there = false;
      for (const std::string& kernel : session->kernels())
        for (const std::string& name : names) is_there = is_there || kernel.starts_with(name + "_");
      EXPECT_TRUE(is_there) << op;
    }
  }
}

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

TEST_P(SessionOnDevice, AStaticCacheKeepsItsLimitAndItsMemory) {
  const auto session = start(1, CacheKind::kStatic, {}, 6);
  session->forward(call(1, 0, 3));
  session->forward(call(1, 3, 1));
  const int64_t allocations = model->memory().allocations;
  session->forward(call(1, 4, 1));
  session->forward(call(1, 5, 1));
  EXPECT_EQ(model->memory().allocations, allocations);
  EXPECT_THROW(session->forward(call(1, 6, 1)), InputError);
  session->reset();
  EXPECT_NO_THROW(session->forward(call(1, 0, 6)));
}

TEST_P(SessionOnDevice, StepsThroughAStaticCacheAreReplaysAndEqualTheEagerOnes) {
  const auto is_replay = [](const Session& session) {
    const std::vector<std::string> kernels = session.kernels();
    return std::find(kernels.begin(), kernels.end(), kStepGraphId) != kernels.end();
  };
  const auto replayed = start(2, CacheKind::kStatic, {}, 40);
  for (int64_t length : {20, 9}) {  // the second request is shorter
    const auto eager = start(2, CacheKind::kDynamic);
    replayed->reset();
    eager->forward(call(2, 0, 5));
    replayed->forward(call(2, 0, 5));
    EXPECT_FALSE(is_replay(*replayed));
    for (int64_t first = 5; first < length; ++first) {
      const Trace a = eager->forward(call(2, first, 1)), b = replayed->forward(call(2, first, 1));
      EXPECT_FALSE(is_replay(*eager));
      EXPECT_TRUE(is_replay(*replayed));
      ASSERT_EQ(a.probes.size(), b.probes.size());
      for (size_t i = 0; i < a.probes.size(); ++i) {
        EXPECT_EQ(a.probes[i].name, b.probes[i].name);
        for (int64_t k = 0; k < a.probes[i].value.count(); ++k)
          ASSERT_EQ(a.probes[i].value.at(k), b.probes[i].value.at(k)) << a.probes[i].name << " of column " << first;
      }
    }
    const std::vector<NamedTensor> a = eager->states(), b = replayed->states();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i)
      for (int64_t k = 0; k < a[i].value.count(); ++k) ASSERT_EQ(a[i].value.at(k), b[i].value.at(k)) << a[i].name;
  }
}

TEST_P(SessionOnDevice, AThousandReplaysTakeNoMemory) {
  const auto session = start(1, CacheKind::kStatic, {}, 1003);
  session->forward(call(1, 0, 2));
  const auto step = [&] {
    Call one = call(1, session->length(), 1);
    one.capture = false;
    session->forward(one);
  };
  step();
  const MemoryUse before = model->memory();
  for (int i = 0; i < 1000; ++i) step();
  EXPECT_EQ(model->memory().allocations, before.allocations);
  EXPECT_EQ(model->memory().current_bytes, before.current_bytes);
}

TEST_P(SessionOnDevice, WeightsComeBackAsTheyWere) {
  const auto source = open_weights(config);
  int64_t bytes = 0;
  for (const WeightSpec& spec : model_spec(config.model).weights(config)) {
    const HostTensor expected = source->read(spec.name), got = model->weight(spec.name);
    ASSERT_EQ(got.shape(), expected.shape()) << spec.name;
    for (int64_t i = 0; i < got.count(); ++i) ASSERT_EQ(got.at(i), expected.at(i)) << spec.name;
    bytes += 4 * got.count();
  }
  EXPECT_GE(model->memory().peak_weight_bytes, bytes);
  EXPECT_GT(model->memory().allocations, 0);
  EXPECT_THROW(model->weight("backbone.nothing"), InputError);
}

TEST_P(SessionOnDevice, BadWeightsAreNamed) {
  std::string name;
  for (const WeightSpec& spec : model_spec(config.model).weights(config))
    if (name.empty() && (spec.role == Role::kNorm || spec.role == Role::kZeroNorm)) name = spec.name;
  const auto base = open_weights(config);
  const auto refusal = [&](const std::string& changed, HostTensor value) -> std::string {
    try {
      load_model(config, ChangedWeights(base, changed, std::move(value)), {});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  HostTensor infinite = base->read(name);
  infinite.values<float>()[2] = std::numeric_limits<float>::infinity();
  for (const std::string& text :
       {refusal(name, HostTensor()), refusal(name, HostTensor(DType::kF32, {1})), refusal(name, infinite)})
    EXPECT_NE(text.find(name), std::string::npos) << text;
  EXPECT_NE(refusal("one.more", HostTensor(DType::kF32, {1})).find("one.more"), std::string::npos);
}

TEST_P(SessionOnDevice, AModelMayGoBeforeItsSession) {
  const auto session = start(1, CacheKind::kDynamic);
  model.reset();
  EXPECT_NO_THROW(session->forward(call(1, 0, 3)));
}

INSTANTIATE_TEST_SUITE_P(Families, SessionOnDevice, testing::ValuesIn(network_names()),
                         [](const auto& family) { return family.param; });

TEST(Load, OptionsItDoesNotHaveAreUnsupportedOnAnyMachine) {
  const ModelConfig config = tiny("mamba2");
  const auto source = open_weights(config);
  LoadOptions options;
  options.compute = DType::kBF16;
  EXPECT_THROW(load_model(config, *source, options), UnsupportedError);
  options = {};
  options.weights = DType::kF16;
  EXPECT_THROW(load_model(config, *source, options), UnsupportedError);
  options = {};
  options.quantization = "nf4";
  EXPECT_THROW(load_model(config, *source, options), UnsupportedError);
  options = {};
  options.residency = Residency::kOffloaded;
  EXPECT_THROW(load_model(config, *source, options), UnsupportedError);
}

TEST(Load, WithoutADeviceIsUnsupportedWithTheReason) {
  if (device_facts().is_usable) GTEST_SKIP() << "this machine has " << device_facts().name;
  const ModelConfig config = tiny("mamba");
  try {
    load_model(config, *open_weights(config), {});
    FAIL() << "a model was loaded without a device";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find(device_facts().reason), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace assay::fast

// The gated delta rule, the short convolution and the norms around them on the device, in every form, against plain
// loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "fast/device/device.hpp"
#include "fast/ops/op_runner.hpp"

namespace assay::fast {
namespace {

// A fixed sequence in [low, high); neighbours differ.
HostTensor draw(Shape shape, double low, double high, uint64_t seed) {
  HostTensor tensor(DType::kF32, std::move(shape));
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (float& value : tensor.values<float>()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<float>(low + (high - low) * static_cast<double>(state >> 40) / 16777216.0);
  }
  return tensor;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class GatedOps : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    runner = std::make_unique<OpRunner>();
  }
  void expect_near(const OpResult& result, const std::string& name, const std::vector<double>& expected) {
    const auto got = std::find_if(result.outputs.begin(), result.outputs.end(),
                                  [&name](const NamedTensor& output) { return output.name == name; });
    ASSERT_NE(got, result.outputs.end()) << name;
    ASSERT_EQ(got->value.count(), static_cast<int64_t>(expected.size())) << name;
    double scale = 0, largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      scale = std::max(scale, std::abs(expected[i]));
      const double difference = std::abs(got->value.at(static_cast<int64_t>(i)) - expected[i]);
      largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    EXPECT_LE(largest, 5e-6 * scale) << name;
  }
  std::unique_ptr<OpRunner> runner;
};

struct DeltaRuleResult {
  std::vector<double> o, state;
};

// Column by column. Heads [Hk, Hv] = [2, 4].
DeltaRuleResult delta_rule(const OpCall& call, int64_t length, int64_t key_dim, int64_t value_dim) {
  const HostTensor &q = call.required("q"), &k = call.required("k"), &v = call.required("v"), &g = call.required("g");
  const HostTensor &beta = call.required("beta"), &A = call.required("A"), &bias = call.required("dt_bias");
  const HostTensor& initial = call.required("initial_state");
  DeltaRuleResult result{std::vector<double>(static_cast<size_t>(2 * length * 4 * value_dim)), {}};
  for (int64_t i = 0; i < initial.count(); ++i) result.state.push_back(initial.at(i));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t t = 0; t < length; ++t) {
        const int64_t row = b * length + t, key_at = (row * 2 + h / 2) * key_dim;
        double keys = 1e-6, queries = 1e-6;
        for (int64_t i = 0; i < key_dim; ++i) {
          keys += k.at(key_at + i) * k.at(key_at + i);
          queries += q.at(key_at + i) * q.at(key_at + i);
        }
        const double decay = std::exp(A.at(h) * std::log1p(std::exp(g.at(row * 4 + h) + bias.at(h))));
        double* state = result.state.data() + (b * 4 + h) * key_dim * value_dim;
        for (int64_t j = 0; j < value_dim; ++j) {
          double held = 0, out = 0;
          for (int64_t i = 0; i < key_dim; ++i) {
            state[i * value_dim + j] *= decay;
            held += state[i * value_dim + j] * k.at(key_at + i) / std::sqrt(keys);
          }
          const double e = sigmoid(beta.at(row * 4 + h)) * (v.at((row * 4 + h) * value_dim + j) - held);
          for (int64_t i = 0; i < key_dim; ++i) {
            state[i * value_dim + j] += e * k.at(key_at + i) / std::sqrt(keys);
            out += state[i * value_dim + j] * q.at(key_at + i) / std::sqrt(queries * static_cast<double>(key_dim));
          }
          result.o[static_cast<size_t>((row * 4 + h) * value_dim + j)] = out;
        }
      }
  return result;
}

TEST_F(GatedOps, DeltaRuleInBothForms) {
  for (const auto& [key_dim, value_dim] : {std::pair<int64_t, int64_t>{6, 5}, {32, 40}})
    for (const int64_t length : {1, 67, 130}) {
      OpCall call;
      call.op = "gated_delta_rule";
      call.attributes = {{"l2norm", 1}, {"sigmoid", 1}};
      call.inputs = {{"q", draw({2, length, 2, key_dim}, -0.5, 1, 1)},
                     {"k", draw({2, length, 2, key_dim}, -0.3, 1, 2)},
                     {"v", draw({2, length, 4, value_dim}, -1, 1, 3)},
                     {"g", draw({2, length, 4}, -1, 1, 4)},
                     {"beta", draw({2, length, 4}, -2, 2, 5)},
                     {"A", draw({4}, -1, -0.01, 6)},
                     {"dt_bias", draw({4}, -2, 0.5, 7)},
                     {"initial_state", draw({2, 4, key_dim, value_dim}, -1, 1, 8)}};
      const DeltaRuleResult expected = delta_rule(call, length, key_dim, value_dim);
      for (const char* form : {"chunked", "update"}) {
        SCOPED_TRACE(std::string(form) + " K " + std::to_string(key_dim) + " L " + std::to_string(length));
        call.form = form;
        const OpResult result = runner->run(call);
        expect_near(result, "o", expected.o);
        expect_near(result, "final_state", expected.state);
        EXPECT_EQ(result.kernels, std::vector<std::string>{"gated_delta_rule_" + std::string(form) + "_f32@sm_90"});
      }
    }
}

TEST_F(GatedOps, ShortConvMasksProductsAndSums) {
  const int64_t length = 11, channels = 5, taps = 3;
  OpCall call;
  call.op = "short_conv";
  HostTensor mask(DType::kU8, {2, length});
  for (int64_t i = 0; i < mask.count(); ++i) mask.values<uint8_t>()[static_cast<size_t>(i)] = i >= length || i >= 4;
  const HostTensor bcx = draw({2, length, 3, channels}, -1, 1, 1), weight = draw({channels, taps}, -1, 1, 2);
  const HostTensor bias = draw({channels}, 0.2, 1, 3);
  call.inputs = {{"bcx", bcx}, {"weight", weight}, {"bias", bias}, {"mask", mask}};
  const auto product = [&](int64_t b, int64_t t, int64_t c) {
    if (t < 0 || mask.at(b * length + t) == 0) return 0.0;
    const int64_t at = (b * length + t) * 3 * channels + c;
    return bcx.at(at) * bcx.at(at + 2 * channels);
  };
  std::vector<double> y, state;
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < length; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        double sum = bias.at(c);
        for (int64_t j = 0; j < taps; ++j) sum += weight.at(c * taps + j) * product(b, t - taps + 1 + j, c);
        const double gate = bcx.at((b * length + t) * 3 * channels + channels + c);
        y.push_back(mask.at(b * length + t) == 0 ? 0 : gate * sum);
      }
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t j = 0; j < taps; ++j) state.push_back(product(b, length - taps + j, c));
  for (const char* form : {"sequence", "update"}) {
    SCOPED_TRACE(form);
    call.form = form;
    const OpResult result = runner->run(call);
    expect_near(result, "y", y);
    expect_near(result, "final_state", state);
  }
}

TEST_F(GatedOps, NormBeforeTheGateWithOneWeightForEveryHead) {
  const int64_t rows = 3, heads = 5, width = 12;
  OpCall call;
  call.op = "rms_norm_gated";
  call.attributes = {{"epsilon", 1e-3}};
  const HostTensor x = draw({rows, heads, width}, -1, 1, 1), z = draw({rows, heads, width}, -3, 3, 2);
  const HostTensor weight = draw({width}, 0.5, 1.5, 3);
  call.inputs = {{"x", x}, {"z", z}, {"shared_weight", weight}};
  std::vector<double> y;
  for (int64_t head = 0; head < rows * heads; ++head) {
    double squares = 0;
    for (int64_t i = 0; i < width; ++i) squares += x.at(head * width + i) * x.at(head * width + i);
    const double length = std::sqrt(squares / static_cast<double>(width) + 1e-3);
    for (int64_t i = 0; i < width; ++i) {
      const double gate = z.at(head * width + i);
      y.push_back(weight.at(i) * x.at(head * width + i) / length * gate * sigmoid(gate));
    }
  }
  expect_near(runner->run(call), "y", y);
}

TEST_F(GatedOps, HeadNormsOfASlice) {
  const int64_t rows = 3, heads = 2, width = 37;
  const HostTensor x = draw({rows, 3, heads, width}, -1, 1, 1), weight = draw({width}, -0.5, 0.5, 2);
  OpCall rms, l2;
  rms.op = "head_rms_norm";
  rms.attributes = {{"epsilon", 1e-3}, {"slice", 1}, {"zero_centred", 1}};
  rms.inputs = {{"x", x}, {"weight", weight}};
  l2.op = "l2norm";
  l2.attributes = {{"epsilon", 1e-3}, {"slice", 1}, {"scale", 0.25}};
  l2.inputs = {{"x", x}};
  std::vector<double> normed, unit;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t at = ((t * 3 + 1) * heads + h) * width;
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) squares += x.at(at + i) * x.at(at + i);
      for (int64_t i = 0; i < width; ++i) {
        normed.push_back((1 + weight.at(i)) * x.at(at + i) / std::sqrt(squares / static_cast<double>(width) + 1e-3));
        unit.push_back(0.25 * x.at(at + i) / std::sqrt(squares + 1e-3));
      }
    }
  expect_near(runner->run(rms), "y", normed);
  expect_near(runner->run(l2), "y", unit);
}

}  // namespace
}  // namespace assay::fast

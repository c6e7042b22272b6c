// Every op and form on the device against a plain loop in double.
#include "fast/ops/op_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cases/spec/error.hpp"
#include "fast/device/device.hpp"

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

double silu(double x) { return x / (1 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

class OpOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    runner = std::make_unique<OpRunner>();
  }
  // Output `name` against `expected`, both flat; the bound is a share of the largest expected value.
  void expect_near(const OpResult& result, const std::string& name, const std::vector<double>& expected,
                   double share = 2e-5) {
    const HostTensor* got = nullptr;
    for (const NamedTensor& output : result.outputs)
      if (output.name == name) got = &output.value;
    ASSERT_NE(got, nullptr) << name;
    ASSERT_EQ(got->count(), static_cast<int64_t>(expected.size())) << name;
    double scale = 1e-3;
    for (double value : expected) scale = std::max(scale, std::abs(value));
    int wrong = 0;
    for (int64_t i = 0; i < got->count(); ++i) {
      const double want = expected[static_cast<size_t>(i)];
      if (!(std::abs(got->at(i) - want) <= share * scale) && ++wrong <= 3)
        ADD_FAILURE() << name << " [" << i << "] expected " << want << " got " << got->at(i);
    }
    EXPECT_EQ(wrong, 0) << name << ": elements out of " << expected.size();
  }
  void expect_kernel(const OpResult& result, const std::string& id) {
    EXPECT_NE(std::find(result.kernels.begin(), result.kernels.end(), id), result.kernels.end()) << id;
  }
  std::unique_ptr<OpRunner> runner;
};

TEST_F(OpOnDevice, Embedding) {
  OpCall call;
  call.op = "embedding";
  const HostTensor weight = draw({7, 5}, -1, 1, 1);
  const std::vector<int64_t> ids = {6, 0, 3, 3, 1, 5};
  call.inputs = {{"ids", HostTensor({2, 3}, ids)}, {"weight", weight}};
  std::vector<double> expected;
  for (int64_t id : ids)
    for (int64_t h = 0; h < 5; ++h) expected.push_back(weight.at(id * 5 + h));
  expect_near(runner->run(call), "y", expected, 0);
}

TEST_F(OpOnDevice, EmbeddingRefusesAnIdOutsideTheTable) {
  OpCall call;
  call.op = "embedding";
  call.inputs = {{"ids", HostTensor({1, 1}, std::vector<int64_t>{7})}, {"weight", draw({7, 5}, -1, 1, 1)}};
  EXPECT_THROW(runner->run(call), InputError);
}

TEST_F(OpOnDevice, Linear) {
  const int64_t rows = 5, in = 19, out = 33;
  OpCall call;
  call.op = "linear";
  const HostTensor x = draw({rows, in}, -1, 1, 1), weight = draw({out, in}, -1, 1, 2), bias = draw({out}, -1, 1, 3);
  call.inputs = {{"x", x}, {"weight", weight}, {"bias", bias}};
  std::vector<double> expected;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t o = 0; o < out; ++o) {
      double sum = bias.at(o);
      for (int64_t i = 0; i < in; ++i) sum += x.at(t * in + i) * weight.at(o * in + i);
      expected.push_back(sum);
    }
  const OpResult result = runner->run(call);
  expect_near(result, "y", expected);
  expect_kernel(result, "linear_cublaslt_f32@sm_90");
}

TEST_F(OpOnDevice, RmsNormWithAndWithoutResidual) {
  const int64_t rows = 4, width = 37;
  for (bool has_residual : {false, true}) {
    OpCall call;
    call.op = "rms_norm";
    call.attributes = {{"epsilon", 1e-3}};
    const HostTensor x = draw({rows, width}, -1, 1, 1), residual = draw({rows, width}, -2, 2, 2),
                     weight = draw({width}, 0.5, 1.5, 3);
    call.inputs = {{"x", x}, {"weight", weight}};
    if (has_residual) call.inputs.push_back({"residual", residual});
    std::vector<double> y, sum;
    for (int64_t t = 0; t < rows; ++t) {
      double squares = 0;
      for (int64_t i = 0; i < width; ++i) {
        sum.push_back(x.at(t * width + i) + (has_residual ? residual.at(t * width + i) : 0));
        squares += sum.back() * sum.back();
      }
      for (int64_t i = 0; i < width; ++i)
        y.push_back(weight.at(i) * sum[static_cast<size_t>(t * width + i)] /
                    std::sqrt(squares / static_cast<double>(width) + 1e-3));
    }
    const OpResult result = runner->run(call);
    expect_near(result, "y", y);
    if (has_residual) expect_near(result, "sum", sum);
    EXPECT_EQ(result.outputs.size(), has_residual ? 2u : 1u);
  }
}

TEST_F(OpOnDevice, GatedRmsNormInGroups) {
  const int64_t rows = 3, width = 12, groups = 3;
  OpCall call;
  call.op = "gated_rms_norm";
  call.attributes = {{"epsilon", 1e-3}, {"groups", groups}};
  const HostTensor x = draw({rows, width}, -1, 1, 1), z = draw({rows, width}, -3, 3, 2),
                   weight = draw({width}, 0.5, 1.5, 3);
  call.inputs = {{"x", x}, {"z", z}, {"weight", weight}};
  std::vector<double> expected;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t g = 0; g < groups; ++g) {
      double squares = 0;
      const auto u = [&](int64_t i) { return x.at(t * width + g * 4 + i) * silu(z.at(t * width + g * 4 + i)); };
      for (int64_t i = 0; i < 4; ++i) squares += u(i) * u(i);
      for (int64_t i = 0; i < 4; ++i) expected.push_back(weight.at(g * 4 + i) * u(i) / std::sqrt(squares / 4 + 1e-3));
    }
  expect_near(runner->run(call), "y", expected);
}

TEST_F(OpOnDevice, CausalConv1dInBothForms) {
  const int64_t batch = 2, length = 6, channels = 9, taps = 4;
  const HostTensor x = draw({batch, length, channels}, -1, 1, 1), weight = draw({channels, taps}, -1, 1, 2),
                   bias = draw({channels}, -1, 1, 3), initial = draw({batch, channels, taps}, -1, 1, 4);
  HostTensor mask(DType::kU8, {batch, length});
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < length; ++t) mask.values<uint8_t>()[static_cast<size_t>(b * length + t)] = t >= 2 * b;
  for (const char* form : {"sequence", "update"})
    for (bool has_initial : {false, true})
      for (bool has_mask : {false, true}) {
        SCOPED_TRACE(std::string(form) + (has_initial ? " initial" : "") + (has_mask ? " mask" : ""));
        OpCall call;
        call.op = "causal_conv1d";
        call.form = form;
        call.inputs = {{"x", x}, {"weight", weight}, {"bias", bias}};
        if (has_initial) call.inputs.push_back({"initial_state", initial});
        if (has_mask) call.inputs.push_back({"mask", mask});
        const auto input = [&](int64_t b, int64_t t, int64_t c) {
          if (t >= 0) return x.at((b * length + t) * channels + c);
          return has_initial ? initial.at((b * channels + c) * taps + taps + t) : 0.0;
        };
        std::vector<double> y, final_state;
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t t = 0; t < length; ++t)
            for (int64_t c = 0; c < channels; ++c) {
              double sum = bias.at(c);
              for (int64_t j = 0; j < taps; ++j) sum += weight.at(c * taps + j) * input(b, t - taps + 1 + j, c);
              y.push_back(has_mask && mask.at(b * length + t) == 0 ? 0 : silu(sum));
            }
        for (int64_t b = 0; b < batch; ++b)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t j = 0; j < taps; ++j) final_state.push_back(input(b, length - taps + j, c));
        const OpResult result = runner->run(call);
        expect_near(result, "y", y);
        expect_near(result, "final_state", final_state, 0);
        expect_kernel(result, "causal_conv1d_" + std::string(form) + "_f32@sm_90");
      }
}

TEST_F(OpOnDevice, SelectiveScanInBothForms) {
  const int64_t batch = 2, length = 7, channels = 9, states = 5;
  const HostTensor x = draw({batch, length, channels}, -1, 1, 1), dt = draw({batch, length, channels}, -2, 1, 2),
                   A = draw({channels, states}, -2, -0.1, 3), B = draw({batch, length, 1, states}, -1, 1, 4),
                   C = draw({batch, length, 1, states}, -1, 1, 5), D = draw({channels}, -1, 1, 6),
                   dt_bias = draw({channels}, -1, 1, 7), z = draw({batch, length, channels}, -2, 2, 8),
                   initial = draw({batch, channels, states}, -1, 1, 9);
  for (const char* form : {"sequence", "update"})
    for (bool has_all : {false, true}) {
      SCOPED_TRACE(std::string(form) + (has_all ? " dt_bias z initial_state" : ""));
      OpCall call;
      call.op = "selective_scan";
      call.form = form;
      // Without a bias dt is used as it is, so it has to be positive.
      const HostTensor step = has_all ? dt : draw({batch, length, channels}, 0.01, 1, 2);
      call.inputs = {{"x", x}, {"dt", step}, {"A", A}, {"B", B}, {"C", C}, {"D", D}};
      if (has_all)
        for (const NamedTensor& more :
             std::vector<NamedTensor>{{"dt_bias", dt_bias}, {"z", z}, {"initial_state", initial}})
          call.inputs.push_back(more);
      std::vector<double> y(static_cast<size_t>(x.count())), final_state;
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t i = 0; i < channels; ++i) {
          std::vector<double> h(static_cast<size_t>(states), 0);
          for (int64_t n = 0; n < states && has_all; ++n)
            h[static_cast<size_t>(n)] = initial.at((b * channels + i) * states + n);
          for (int64_t t = 0; t < length; ++t) {
            const int64_t at = (b * length + t) * channels + i;
            const double d = has_all ? softplus(step.at(at) + dt_bias.at(i)) : step.at(at);
            double sum = D.at(i) * x.at(at);
            for (int64_t n = 0; n < states; ++n) {
              double& state = h[static_cast<size_t>(n)];
              const int64_t there = (b * length + t) * states + n;
              state = std::exp(d * A.at(i * states + n)) * state + d * B.at(there) * x.at(at);
              sum += C.at(there) * state;
            }
            y[static_cast<size_t>(at)] = has_all ? sum * silu(z.at(at)) : sum;
          }
          final_state.insert(final_state.end(), h.begin(), h.end());
        }
      const OpResult result = runner->run(call);
      expect_near(result, "y", y);
      expect_near(result, "final_state", final_state);
      expect_kernel(result, "selective_scan_" + std::string(form) + "_f32@sm_90");
    }
}

TEST_F(OpOnDevice, SsdInBothForms) {
  const int64_t batch = 2, length = 11, heads = 6, width = 3, groups = 2, states = 5;
  const HostTensor x = draw({batch, length, heads, width}, -1, 1, 1), dt = draw({batch, length, heads}, -2, 2, 2),
                   A = draw({heads}, -2, -0.1, 3), B = draw({batch, length, groups, states}, -1, 1, 4),
                   C = draw({batch, length, groups, states}, -1, 1, 5), D = draw({heads}, -1, 1, 6),
                   dt_bias = draw({heads}, -1, 1, 7), initial = draw({batch, heads, width, states}, -1, 1, 8);
  for (const char* form : {"chunked", "update"})
    for (bool has_initial : {false, true}) {
      SCOPED_TRACE(std::string(form) + (has_initial ? " initial_state" : ""));
      OpCall call;
      call.op = "ssd";
      call.form = form;
      call.attributes = {{"chunk_size", 4}, {"dt_min", 0.2}, {"dt_max", 1.0}};
      call.inputs = {{"x", x}, {"dt", dt}, {"A", A}, {"B", B}, {"C", C}, {"D", D}, {"dt_bias", dt_bias}};
      if (has_initial) call.inputs.push_back({"initial_state", initial});
      std::vector<double> y(static_cast<size_t>(x.count())), final_state;
      for (int64_t b = 0; b < batch; ++b)
        for (int64_t h = 0; h < heads; ++h)
          for (int64_t p = 0; p < width; ++p) {
            std::vector<double> S(static_cast<size_t>(states), 0);
            for (int64_t n = 0; n < states && has_initial; ++n)
              S[static_cast<size_t>(n)] = initial.at(((b * heads + h) * width + p) * states + n);
            for (int64_t t = 0; t < length; ++t) {
              const int64_t token = b * length + t, at = (token * heads + h) * width + p;
              const double d = std::min(1.0, std::max(0.2, softplus(dt.at(token * heads + h) + dt_bias.at(h))));
              double sum = D.at(h) * x.at(at);
              for (int64_t n = 0; n < states; ++n) {
                double& state = S[static_cast<size_t>(n)];
                const int64_t there = (token * groups + h / (heads / groups)) * states + n;
                state = std::exp(d * A.at(h)) * state + d * x.at(at) * B.at(there);
                sum += state * C.at(there);
              }
              y[static_cast<size_t>(at)] = sum;
            }
            final_state.insert(final_state.end(), S.begin(), S.end());
          }
      const OpResult result = runner->run(call);
      expect_near(result, "y", y);
      expect_near(result, "final_state", final_state);
      expect_kernel(result, "ssd_" + std::string(form) + "_f32@sm_90");
    }
}

TEST_F(OpOnDevice, TimingHasOneEntryALaunchAndTheBytesOfEveryTensor) {
  OpCall call;
  call.op = "linear";
  call.inputs = {{"x", draw({4, 8}, -1, 1, 1)}, {"weight", draw({16, 8}, -1, 1, 2)}};
  const OpTiming timing = runner->time(call, 5);
  ASSERT_EQ(timing.time_us.size(), 5u);
  for (double time_us : timing.time_us) EXPECT_GT(time_us, 0);
  EXPECT_EQ(timing.bytes, 4.0 * (4 * 8 + 16 * 8 + 4 * 16));
  EXPECT_EQ(timing.flops, 2.0 * 4 * 8 * 16);
  EXPECT_THROW(runner->time(call, 0), InputError);
}

TEST_F(OpOnDevice, RefusesWhatTheContractDoesNotHave) {
  OpCall call;
  call.op = "transformer";
  EXPECT_THROW(runner->run(call), UnsupportedError);
  call.op = "ssd";
  call.form = "recurrent";
  EXPECT_THROW(runner->run(call), UnsupportedError);
  call.op = "linear";
  call.form = "";
  call.inputs = {{"x", draw({4, 8}, -1, 1, 1)}};
  EXPECT_THROW(runner->run(call), InputError);
  call.inputs.push_back({"weight", draw({16, 9}, -1, 1, 2)});
  EXPECT_THROW(runner->run(call), InputError);
  call.inputs.back() = {"weight", draw({16, 8}, -1, 1, 2)};
  call.attributes = {{"epsilon", 1}};
  EXPECT_THROW(runner->run(call), InputError);
}

}  // namespace
}  // namespace assay::fast

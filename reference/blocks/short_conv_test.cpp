// The gated short convolution on two channels, worked out by hand.
#include "reference/blocks/short_conv.hpp"

#include <gtest/gtest.h>

#include "cases/spec/model_spec.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

// One convolution layer of two channels; tensors that are not given are zero.
class Given final : public WeightSource {
 public:
  explicit Given(const ModelConfig& config) {
    for (const WeightSpec& weight : model_spec(config.model).weights(config))
      tensors_[weight.name] = to_host(at::zeros(weight.shape));
  }
  void give(const std::string& name, const std::vector<float>& values) {
    HostTensor& tensor = tensors_.at(name);
    tensor = to_host(at::tensor(values).view(tensor.shape()));
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors_) names.push_back(name);
    return names;
  }
  bool has(const std::string& name) const override { return tensors_.contains(name); }
  HostTensor read(const std::string& name) const override { return tensors_.at(name); }

 private:
  std::map<std::string, HostTensor> tensors_;
};

class ShortConvTest : public testing::Test {
 protected:
  ShortConvTest() {
    config_.model = "lfm2";
    config_.fields = nlohmann::json::parse(R"({"vocab_size": 2, "hidden_size": 2, "intermediate_size": 2,
      "block_auto_adjust_ff_dim": false, "num_hidden_layers": 1, "layer_types": ["conv"], "num_attention_heads": 1,
      "num_key_value_heads": 1, "conv_bias": true, "conv_L_cache": 3})");
    Given source(config_);
    const std::string prefix = "model.layers.0.conv.";
    // B = (h0 + 1, h1), C = (h1, h0), x = (2 h0 + 1, 3 h1).
    source.give(prefix + "in_proj.weight", {1, 0, 0, 1, 0, 1, 1, 0, 2, 0, 0, 3});
    source.give(prefix + "in_proj.bias", {1, 0, 0, 0, 1, 0});
    source.give(prefix + "conv.weight", {1, 10, 100, 0, 0, 1});
    source.give(prefix + "conv.bias", {0, -1});
    source.give(prefix + "out_proj.weight", {1, 0, 0, 0.5F});
    source.give(prefix + "out_proj.bias", {0, 4});
    store_ = store_of(config_, std::make_shared<const Given>(source));
    initial_state(state_, 1, shape_);
  }

  at::Tensor run(const std::vector<float>& h, const at::Tensor& mask = {}) {
    Pass pass{mask, {}, {}, forms_, probes_};
    const auto length = static_cast<int64_t>(h.size() / 2);
    return short_conv(at::tensor(h).view({1, length, 2}), {*store_, "model.layers.0.conv.", "layers.0.mixer."}, shape_,
                      state_, pass);
  }

  ModelConfig config_;
  std::unique_ptr<WeightStore> store_;
  Forms forms_;
  Probes probes_{true};
  ShortConvShape shape_{.hidden_size = 2, .conv_kernel = 3, .has_bias = true};
  LayerState state_;
};

// h = (1, 1), (2, 0), (0, 1): B * x = (6, 3), (15, 0), (1, 3).
// v = (600, 2), (1560, -1), (256, 2), without an activation: -1 stays. C * v = (600, 2), (0, -2), (256, 0).
TEST_F(ShortConvTest, GatesBeforeAndAfter) {
  const at::Tensor y = run({1, 1, 2, 0, 0, 1});
  EXPECT_EQ(difference(y, at::tensor({600., 5., 0., 3., 256., 4.}).view({1, 3, 2})), 0);
  EXPECT_EQ(difference(state_.conv, at::tensor({6., 15., 1., 3., 0., 3.}).view({1, 2, 3})), 0);

  const Trace trace = probes_.take();
  ASSERT_EQ(trace.probes.size(), 4U);
  EXPECT_EQ(trace.probes[1].name, "layers.0.mixer.conv1d");
  EXPECT_EQ(difference(to_aten(trace.probes[1].value), at::tensor({600., 2., 1560., -1., 256., 2.}).view({1, 3, 2})),
            0);
  EXPECT_EQ(trace.probes[2].name, "layers.0.mixer.gate");
}

TEST_F(ShortConvTest, GoesOnFromItsWindow) {
  run({1, 1});
  const at::Tensor y = run({2, 0, 0, 1});
  EXPECT_EQ(difference(y, at::tensor({0., 3., 256., 4.}).view({1, 2, 2})), 0);
}

// The biases make B * x = (1, 0) at a masked column, whose own h is masked before.
TEST_F(ShortConvTest, MaskedColumnsStayOutOfTheWindow) {
  const at::Tensor y = run({5, 7, 1, 1, 2, 0, 0, 1}, at::tensor({0.F, 1.F, 1.F, 1.F}).view({1, 4}));
  EXPECT_EQ(difference(y.narrow(1, 1, 3), at::tensor({600., 5., 0., 3., 256., 4.}).view({1, 3, 2})), 0);
}

}  // namespace
}  // namespace assay::reference

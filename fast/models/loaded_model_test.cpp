// Loading: weights as they were, sources that are refused, options and machines that are not supported.
#include "fast/models/loaded_model.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "fast/device/device.hpp"
#include "fast/models/testing/session_on_device.hpp"

namespace assay::fast {
namespace {

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

class WeightsOnDevice : public SessionOnDevice {};

TEST_P(WeightsOnDevice, WeightsComeBackAsTheyWere) {
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

TEST_P(WeightsOnDevice, BadWeightsAreNamed) {
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

INSTANTIATE_TEST_SUITE_P(Families, WeightsOnDevice, testing::ValuesIn(network_names()),
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

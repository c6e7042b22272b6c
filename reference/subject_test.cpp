#include "reference/subject.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "cases/spec/export.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

const std::string kNorm = "backbone.layers.1.norm.weight";

std::string load_refusal(const ModelConfig& config, const ChangedSource& source, const LoadOptions& options = {}) {
  return refusal<InputError>(
      [&] { ReferenceSubject().load(config, std::make_shared<const ChangedSource>(source), options); });
}

TEST(Subject, SaysWhatItIs) {
  const ReferenceSubject subject;
  EXPECT_EQ(subject.capabilities().name, "reference");
  const std::vector<std::string>& models = subject.capabilities().models;
  EXPECT_EQ(models.size(), model_specs().size());
  for (const ModelSpec& spec : model_specs()) EXPECT_EQ(std::ranges::count(models, spec.name), 1) << spec.name;
  EXPECT_EQ(subject.capabilities().compute_dtypes, std::vector<DType>{DType::kF32});
  EXPECT_EQ(subject.capabilities().forms.at("ssd").front(), "recurrent");
  EXPECT_FALSE(subject.capabilities().is_accelerated);
  ASSERT_EQ(subject.capabilities().versions.size(), 1u);
  EXPECT_EQ(subject.capabilities().versions[0].rfind("torch ", 0), 0u);
}

TEST(Subject, RefusesWeightsThatAreNotTheConfigs) {
  for (const char* id : {"mamba/tiny", "mamba2/tiny"}) {
    const ModelConfig config = repository_config(id);
    const ChangedSource good(open_weights(config));

    ChangedSource missing = good;
    missing.removed.insert(kNorm);
    expect_parts(load_refusal(config, missing), {"backbone.layers.1.norm.weight", "missing"});

    ChangedSource unexpected = good;
    unexpected.replaced["backbone.layers.0.mixer.q_proj.weight"] = HostTensor(DType::kF32, {2});
    expect_parts(load_refusal(config, unexpected), {"mixer.q_proj.weight"});

    ChangedSource misshapen = good;
    misshapen.replaced[kNorm] = HostTensor(DType::kF32, {23});
    expect_parts(load_refusal(config, misshapen), {"norm.weight", "[23]", "[24]"});

    ChangedSource integers = good;
    integers.replaced[kNorm] = HostTensor(DType::kI64, {24});
    expect_parts(load_refusal(config, integers), {"norm.weight", "int64"});

    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      ChangedSource broken = good;
      broken.replaced[kNorm] = good.read(kNorm);
      broken.replaced[kNorm].values<float>()[5] = value;
      expect_parts(load_refusal(config, broken), {"norm.weight", "[5]", "not finite"});
    }

    // Finite in float32, beyond the largest float16.
    ChangedSource large = good;
    large.replaced[kNorm] = good.read(kNorm);
    large.replaced[kNorm].values<float>()[7] = 1e6F;
    EXPECT_EQ(load_refusal(config, large), "");
    expect_parts(load_refusal(config, large, {.weights = DType::kF16}), {"[7]", "float16"});
  }
}

TEST(Subject, IgnoresAHeadThatIsTied) {
  const ModelConfig config = repository_config("mamba/tiny");
  auto source = std::make_shared<ChangedSource>(open_weights(config));
  source->replaced["lm_head.weight"] = HostTensor(DType::kF32, {56, 24});
  const auto model = ReferenceSubject().load(config, source, {});
  const auto plain = load("mamba/tiny");
  EXPECT_EQ(difference(logits(*model->start({}), {{1, 2, 3}}), logits(*plain->start({}), {{1, 2, 3}})), 0);
  expect_parts(refusal<InputError>([&] { model->weight("lm_head.weight"); }), {"lm_head.weight"});
}

TEST(Subject, RoundsWeightsToTheDtypeAskedFor) {
  const auto full = load("mamba2/tiny"), half = load("mamba2/tiny", {.weights = DType::kBF16});
  const HostTensor before = full->weight(kNorm), after = half->weight(kNorm);
  EXPECT_EQ(after.dtype(), DType::kF32);
  bool has_moved = false;
  for (int64_t i = 0; i < before.count(); ++i) {
    const float value = after.values<float>()[static_cast<size_t>(i)];
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    EXPECT_EQ(bits & 0xFFFFU, 0u) << "element " << i << " is no bfloat16";
    EXPECT_NEAR(after.at(i), before.at(i), std::abs(before.at(i)) / 256);
    has_moved = has_moved || after.at(i) != before.at(i);
  }
  EXPECT_TRUE(has_moved);
}

TEST(Subject, CountsItsWeights) {
  const ModelConfig config = repository_config("mamba2/tiny");
  int64_t bytes = 0;
  for (const WeightSpec& spec : model_spec("mamba2").weights(config)) bytes += 4 * element_count(spec.shape);
  EXPECT_EQ(load("mamba2/tiny")->memory().peak_weight_bytes, bytes);
}

TEST(Subject, RefusesWhatItCannotDo) {
  const auto refused = [](const LoadOptions& options) {
    return refusal<UnsupportedError>([&] { load("mamba/tiny", options); });
  };
  expect_parts(refused({.compute = DType::kBF16}), {"reference", "bfloat16"});
  expect_parts(refused({.weights = DType::kF64}), {"float64"});
  expect_parts(refused({.quantization = "fp4"}), {"fp4", "nf4"});

  ModelConfig config = repository_config("mamba/tiny");
  const auto source = open_weights(config);
  config.model = "marvellous";
  expect_parts(refusal<UnsupportedError>([&] { ReferenceSubject().load(config, source, {}); }),
               {"marvellous", "mamba, mamba2"});
}

// Whatever the layout of the file, the same tensors and so the same bits of logits.
TEST(Subject, LoadsEveryLayoutOfEveryFamily) {
  const ScratchFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  const std::vector<std::vector<int64_t>> prompt = {{3, 17, 29, 5, 41, 8, 2, 50, 11}};
  for (const ModelSpec& spec : model_specs()) {
    const ModelConfig config = repository_config(std::string(spec.name) + "/tiny");
    const auto expected = logits(*ReferenceSubject().load(config, open_weights(config), {})->start({}), prompt);
    ModelConfig checkpoint = config;
    checkpoint.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    checkpoint.weights.directory = folder;
    const Layout traits = config_traits(config);
    std::vector<Layout> layouts = {kReleased, traits};
    for (Layout trait = 1; trait <= traits; trait <<= 1)
      if (traits & trait) layouts.push_back(trait);
    for (const Layout layout : layouts) {
      export_model(config, folder, layout);
      const auto model = ReferenceSubject().load(checkpoint, open_weights(checkpoint), {});
      EXPECT_EQ(difference(logits(*model->start({}), prompt), expected), 0) << spec.name << " " << layout_name(layout);
    }
  }
}

TEST(Subject, ACheckpointsFaultsAreNamedWithTheirFile) {
  const ScratchFolder temporary;
  const std::filesystem::path& folder = temporary.path();
  ModelConfig config = repository_config("jamba/tiny");
  export_model(config, folder, kFused);
  config.weights.kind = WeightsRecipe::Kind::kCheckpoint;
  config.weights.directory = folder;
  const auto file = open_safetensors(folder / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const std::string& tensor : file->names()) tensors.push_back({tensor, file->read(tensor)});
  for (NamedTensor& tensor : tensors)
    if (tensor.name == "model.layers.1.feed_forward.experts.down_proj") tensor.value.values<float>()[7] = std::nanf("");
  write_safetensors(folder / "model.safetensors", tensors, {});
  expect_parts(refusal<InputError>([&] { ReferenceSubject().load(config, open_weights(config), {}); }),
               {"model.safetensors", "experts.down_proj'", "experts.0.down_proj.weight", "[0, 7]", "not finite"});
}

TEST(Subject, RowsDoNotReadEachOther) {
  for (const char* id : {"mamba/tiny", "mamba2/awkward"}) {
    const auto model = load(id);
    const auto together = model->start({.rows = 2}), alone = model->start({});
    const at::Tensor both = logits(*together, {{1, 2, 3, 4}, {9, 8, 7, 6}});
    EXPECT_LT(difference(both.narrow(0, 1, 1), logits(*alone, {{9, 8, 7, 6}})), 3e-5);
  }
}

}  // namespace
}  // namespace assay::reference

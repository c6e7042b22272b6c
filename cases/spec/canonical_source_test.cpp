// Every layout of every config read back, and files that mix, lack or contradict.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/export.hpp"
#include "cases/spec/layouts.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/weights.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

ModelConfig repository_config(const std::string& id) {
  return read_config(fs::path(ASSAY_ROOT) / "cases" / "models" / (id + ".config.json"));
}

class CanonicalSources : public ::testing::Test {
 protected:
  ModelConfig as_checkpoint(ModelConfig config) const {
    config.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    config.weights.directory = folder_;
    return config;
  }

  using Tensors = std::map<std::string, HostTensor>;

  // What is said of the layout's file after a change; empty if it is read to the end.
  std::string refusal(const std::string& id, Layout layout, const std::function<void(Tensors&)>& change) const {
    const ModelConfig config = repository_config(id);
    export_model(config, folder_, layout);
    Tensors tensors;
    const auto file = open_safetensors(folder_ / "model.safetensors");
    for (const std::string& name : file->names()) tensors[name] = file->read(name);
    change(tensors);
    std::vector<NamedTensor> changed;
    for (auto& [name, value] : tensors) changed.push_back({name, std::move(value)});
    write_safetensors(folder_ / "model.safetensors", changed, {});
    try {
      const auto source = open_weights(as_checkpoint(config));
      for (const WeightSpec& spec : model_spec(config.model).weights(config)) read_weight(spec, *source);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

void expect_parts(const std::string& text, std::initializer_list<std::string> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " not in: " << text;
}

// Every union of the traits that the tiny config's files can have; of the other configs' all at once.
TEST_F(CanonicalSources, EveryLayoutOfEveryConfigReadsBack) {
  Layout seen = kReleased;
  std::map<std::string, int> layouts;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ASSAY_ROOT) / "cases" / "models")) {
    if (!entry.path().filename().string().ends_with(".config.json")) continue;
    const ModelConfig config = read_config(entry.path());
    if (config.name == "real") continue;  // the same tables, gigabytes of weights
    std::map<std::string, std::string> expected;
    const auto drawn = open_weights(config);
    for (const std::string& name : drawn->names()) expected[name] = sha256(drawn->read(name).bytes());

    const Layout traits = config_traits(config);
    seen |= traits;
    for (Layout layout = traits;; layout = (layout - 1) & traits) {
      SCOPED_TRACE(config.id() + " " + layout_name(layout));
      export_model(config, folder_, layout);
      const auto source = open_weights(as_checkpoint(config));
      EXPECT_EQ(source->names().size(), expected.size());
      for (const auto& [name, digest] : expected) EXPECT_EQ(sha256(source->read(name).bytes()), digest) << name;
      ++layouts[config.model];
      if (layout == kReleased || config.name != "tiny") break;
    }
  }
  EXPECT_EQ(seen, kFused | kOneByOne | kRenamed | kCopies | kTiedCopy | kExtras);
  for (const ModelSpec& spec : model_specs()) EXPECT_GE(layouts[std::string(spec.name)], 2) << spec.name;
}

// A layout that writes what the release has would prove nothing.
TEST_F(CanonicalSources, LayoutsDifferFromTheRelease) {
  const auto names_in = [&](const std::string& id, Layout layout) {
    export_model(repository_config(id), folder_, layout);
    return open_safetensors(folder_ / "model.safetensors")->names();
  };
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const auto fused = names_in("jamba/tiny", kFused);
  EXPECT_TRUE(has(fused, "model.layers.1.feed_forward.experts.gate_up_proj"));
  EXPECT_FALSE(has(fused, "model.layers.1.feed_forward.experts.0.gate_proj.weight"));
  EXPECT_TRUE(
      has(names_in("qwen3_5_moe/tiny", kOneByOne), "model.language_model.layers.0.mlp.experts.5.up_proj.weight"));
  EXPECT_TRUE(has(names_in("zamba2/tiny", kCopies), "model.layers.3.shared_transformer.feed_forward.down_proj.weight"));
  EXPECT_TRUE(has(names_in("lfm2/tiny", kTiedCopy), "lm_head.weight"));
  EXPECT_TRUE(has(names_in("qwen3_5/tiny", kExtras), "model.visual.pos_embed.weight"));
  const auto renamed = names_in("bamba/tiny", kRenamed);
  EXPECT_TRUE(has(renamed, "backbone.layers.2.mixer.in_proj.weight"));
  EXPECT_TRUE(has(renamed, "backbone.layers.0.mlp.fc1.weight"));
  for (const std::string& name : renamed) EXPECT_FALSE(name.starts_with("model.")) << name;
}

TEST_F(CanonicalSources, ALayoutThatAConfigCannotHaveIsRefused) {
  const auto refused = [&](const std::string& id, Layout layout) -> std::string {
    try {
      export_model(repository_config(id), folder_, layout);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  expect_parts(refused("mamba/tiny", kFused), {"'fused'", "mamba/tiny", "renamed,tied_copy"});
  expect_parts(refused("jamba/tiny", kFused | kTiedCopy), {"'tied_copy'", "fused"});
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CanonicalSources, MissingAndUnexpectedTensorsAreNamed) {
  const std::string gate = "model.layers.1.feed_forward.experts.2.gate_proj.weight";
  expect_parts(refusal("jamba/tiny", kReleased, [&](Tensors& t) { t.erase(gate); }),
               {"'" + gate + "'", "is missing", "experts.0.gate_proj.weight"});
  expect_parts(
      refusal("jamba/tiny", kFused, [&](Tensors& t) { t.erase("model.layers.1.feed_forward.experts.gate_up_proj"); }),
      {"'model.layers.1.feed_forward.experts.0.gate_proj.weight'", "is missing"});
  expect_parts(refusal("jamba/tiny", kReleased,
                       [&](Tensors& t) { t["model.layers.1.feed_forward.experts.4.gate_proj.weight"] = t.at(gate); }),
               {"model.safetensors tensor 'model.layers.1.feed_forward.experts.4.gate_proj.weight'", "nearest", gate});
  // Ignored by other families only.
  expect_parts(refusal("jamba/tiny", kReleased, [&](Tensors& t) { t["mtp.norm.weight"] = t.at(gate); }),
               {"'mtp.norm.weight'"});
  // Half of a fused tensor's parts, alone or beside the whole.
  const std::string stacked = "model.language_model.layers.0.mlp.experts.";
  expect_parts(refusal("qwen3_5_moe/tiny", kOneByOne, [&](Tensors& t) { t.erase(stacked + "3.up_proj.weight"); }),
               {"'" + stacked + "gate_up_proj'", "only in part", "'" + stacked + "3.up_proj.weight'"});
  expect_parts(refusal("qwen3_5_moe/tiny", kReleased,
                       [&](Tensors& t) {
                         t[stacked + "3.down_proj.weight"] = HostTensor(DType::kF32, {24, 10});
                       }),
               {"'" + stacked + "down_proj'", "only in part", "'" + stacked + "0.down_proj.weight'"});
}

TEST_F(CanonicalSources, ShapesAreThoseOfTheFile) {
  const std::string fused = "model.layers.1.feed_forward.experts.gate_up_proj";
  // One expert too few; then gate and up as [E, H, 2F], whose elements are as many.
  expect_parts(refusal("jamba/tiny", kFused,
                       [&](Tensors& t) {
                         t[fused] = HostTensor(DType::kF32, {3, 40, 24});
                       }),
               {"model.safetensors tensor '" + fused + "'", "[4, 40, 24]", "[3, 40, 24]"});
  expect_parts(refusal("jamba/tiny", kFused,
                       [&](Tensors& t) {
                         t[fused] = HostTensor(DType::kF32, {4, 24, 40});
                       }),
               {"'" + fused + "'", "[4, 40, 24]", "[4, 24, 40]"});
  expect_parts(
      refusal("mamba/tiny", kReleased, [](Tensors& t) { t["backbone.norm_f.weight"] = HostTensor(DType::kF32, {23}); }),
      {"model.safetensors tensor 'backbone.norm_f.weight'", "[24]", "[23]"});
}

TEST_F(CanonicalSources, ValuesThatCannotBeUsedAreNamedWithTheirTensor) {
  const std::string fused = "model.layers.1.feed_forward.experts.down_proj";
  // Element [2, 1, 3] of the file is element [1, 3] of expert 2.
  expect_parts(refusal("jamba/tiny", kFused,
                       [&](Tensors& t) { t.at(fused).values<float>()[2 * 24 * 20 + 1 * 20 + 3] = std::nanf(""); }),
               {"tensor '" + fused + "'", "experts.2.down_proj.weight", "[1, 3]", "nan"});
  expect_parts(
      refusal("qwen3_5_moe/tiny", kOneByOne,
              [](Tensors& t) {
                t.at("model.language_model.layers.0.mlp.experts.5.up_proj.weight") = HostTensor(DType::kF16, {10, 24});
              }),
      {"experts.5.up_proj.weight'", "float16", "float32"});
}

// The shared block that a release holds once for each layer that runs it is one block.
TEST_F(CanonicalSources, CopiesMustBeEqual) {
  struct Copied {
    const char *config, *first, *second;
  };
  for (const Copied& copied : std::vector<Copied>{
           {"zamba/tiny", "model.layers.2.shared_transf.", "model.layers.4.shared_transf."},
           {"zamba2/tiny", "model.layers.1.shared_transformer.", "model.layers.3.shared_transformer."}}) {
    SCOPED_TRACE(copied.config);
    const std::string first = copied.first + std::string("pre_ff_layernorm.weight"),
                      second = copied.second + std::string("pre_ff_layernorm.weight");
    const auto refusal_of = [&](Layout layout, const std::function<void(Tensors&)>& change) {
      return refusal(copied.config, layout, change);
    };
    EXPECT_EQ(refusal_of(kCopies, [&](Tensors& t) { EXPECT_TRUE(t.contains(first) && t.contains(second)); }), "");
    expect_parts(refusal_of(kCopies, [&](Tensors& t) { t.at(second).values<float>()[5] += 1; }),
                 {"'" + first + "'", "'" + second + "'", "[5]"});
    // A file that has only the later copy is read from there.
    EXPECT_EQ(refusal_of(kCopies, [&](Tensors& t) { t.erase(first); }), "");
    const auto move = [&](Tensors& t) {
      t[second] = t.at(first);
      t.erase(first);
    };
    EXPECT_EQ(refusal_of(kReleased, move), "");
  }
}

TEST_F(CanonicalSources, TwoLayoutsInOneFileMustAgree) {
  const std::string gate = "model.layers.1.feed_forward.experts.2.gate_proj.weight",
                    fused = "model.layers.1.feed_forward.experts.gate_up_proj";
  const auto with_gate = [&](float by) {
    return refusal("jamba/tiny", kFused, [&](Tensors& t) {
      HostTensor one(DType::kF32, {20, 24});
      const auto whole = t.at(fused).values<float>();
      std::copy_n(whole.begin() + 2 * 40 * 24, one.count(), one.values<float>().begin());
      one.values<float>()[25] += by;
      t[gate] = one;
    });
  };
  EXPECT_EQ(with_gate(0), "");
  expect_parts(with_gate(0.5f), {"'" + gate + "'", "'" + fused + "'", "[1, 1]", "two layouts"});
}

// The embedding is the head whatever the file says (models.md part 6).
TEST_F(CanonicalSources, AHeadBesideATiedEmbeddingIsIgnored) {
  EXPECT_EQ(refusal("lfm2/tiny", kTiedCopy, [](Tensors& t) { t.at("lm_head.weight").values<float>()[0] += 1; }), "");
  EXPECT_EQ(refusal("lfm2/tiny", kTiedCopy, [](Tensors& t) { t["lm_head.weight"] = HostTensor(DType::kF32, {2}); }),
            "");
}

TEST_F(CanonicalSources, PartsAreReadWithoutTheWhole) {
  const ModelConfig config = repository_config("qwen3_5_moe/tiny");
  const std::string name = "model.language_model.layers.0.mlp.experts.gate_up_proj";
  const auto drawn = open_weights(config);
  const HostTensor whole = drawn->read(name);
  export_model(config, folder_, kOneByOne);
  const auto source = open_weights(as_checkpoint(config));
  EXPECT_EQ(source->header(name).shape, whole.shape());
  // Across the border of two of the file's tensors.
  const HostTensor part = source->read_elements(name, 230, 20);
  for (int64_t i = 0; i < 20; ++i) EXPECT_EQ(part.at(i), whole.at(230 + i));
  EXPECT_THROW(source->read_elements(name, whole.count() - 1, 2), InputError);
  EXPECT_THROW(source->read("model.layers.0.nothing"), InputError);
}

TEST_F(CanonicalSources, AConfigOfOtherWeightsIsRefused) {
  ModelConfig config = repository_config("mamba2/tiny");
  export_model(config, folder_);
  config.fields["layer_norm_epsilon"] = 0.5;
  try {
    open_weights(as_checkpoint(config));
    FAIL();
  } catch (const InputError& error) {
    expect_parts(error.what(), {"config.json /layer_norm_epsilon", "0.5", "1e-05"});
  }
}

}  // namespace
}  // namespace assay

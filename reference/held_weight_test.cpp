// Weights held in 16 bit and in NF4, by whole models of the repository's configs.
#include "reference/held_weight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "reference/ops/nf4.hpp"
#include "reference/testing/models.hpp"

namespace assay::reference {
namespace {

bool is_equal(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::ranges::equal(a.bytes(), b.bytes());
}

bool is_bfloat16(const HostTensor& tensor) {
  return std::ranges::all_of(tensor.values<float>(),
                             [](float value) { return (std::bit_cast<uint32_t>(value) & 0xffffU) == 0; });
}

// What the originals keep (transformers 5.24.0, loaded in float16 and in bfloat16): every other weight is 16 bit then.
TEST(HeldWeight, WhatTheOriginalKeepsInFloat32IsNotRounded) {
  const std::map<std::string, std::set<std::string>> kept = {
      {"lfm2_moe",
       {"model.layers.1.feed_forward.expert_bias", "model.layers.2.feed_forward.expert_bias",
        "model.layers.3.feed_forward.expert_bias"}},
      {"nemotron_h", {"backbone.layers.1.mixer.gate.e_score_correction_bias", "backbone.layers.1.mixer.gate.weight"}},
      {"zamba",
       {"model.layers.0.mamba.A_log", "model.layers.1.mamba.A_log", "model.layers.2.mamba_decoder.mamba.A_log",
        "model.layers.3.mamba.A_log", "model.layers.4.mamba_decoder.mamba.A_log"}}};
  for (const ModelSpec& spec : model_specs()) {
    const std::string id = std::string(spec.name) + "/tiny";
    SCOPED_TRACE(id);
    const ModelConfig config = repository_config(id);
    const auto source = open_weights(config);
    LoadOptions options;
    options.weights = DType::kBF16;
    const auto model = ReferenceSubject().load(config, source, options);
    std::set<std::string> exact;
    for (const std::string& name : source->names())
      if (is_equal(model->weight(name), source->read(name))) {
        exact.insert(name);
      } else {
        EXPECT_TRUE(is_bfloat16(model->weight(name))) << name;
      }
    EXPECT_EQ(exact, kept.contains(config.model) ? kept.at(config.model) : std::set<std::string>{});
  }
}

class Quantised : public ::testing::Test {
 protected:
  std::unique_ptr<Model> load(std::shared_ptr<const WeightSource> source) const {
    return ReferenceSubject().load(config, std::move(source), options);
  }
  HostTensor logits_of(Model& model) const {
    SessionOptions session;
    session.cache = CacheKind::kNone;
    Call call;
    call.tokens = tokens({{3, 17, 42, 8, 8, 1}});
    return *model.start(session)->forward(call).find("logits");
  }
  const ModelConfig config = repository_config("mamba2/awkward");
  const std::string in_proj = "backbone.layers.0.mixer.in_proj.weight", norm = "backbone.layers.0.norm.weight";
  LoadOptions options{.quantization = "nf4", .quantized = {in_proj, "backbone.layers.1.mixer.out_proj.weight"}};
};

TEST_F(Quantised, OnlyWhatTheOptionsName) {
  const auto source = open_weights(config);
  for (const char* kind : {"nf4", "nf4dq"}) {
    options.quantization = kind;
    const auto model = load(source);
    for (const std::string& name : source->names()) {
      const bool is_quantised = std::count(options.quantized.begin(), options.quantized.end(), name) > 0;
      EXPECT_EQ(is_equal(model->weight(name), source->read(name)), !is_quantised) << name;
      EXPECT_EQ(model->quantized(name).size(), !is_quantised ? 0u : options.quantization == "nf4" ? 2u : 4u) << name;
    }
    const Nf4Weight expected = quantize_nf4(to_aten(source->read(in_proj)), options.quantization == "nf4dq");
    EXPECT_TRUE(is_equal(model->weight(in_proj), dequantized(expected, source->read(in_proj).shape())));
    EXPECT_TRUE(is_equal(model->quantized(in_proj)[0].value, expected.codes));
  }
}

TEST_F(Quantised, OffloadedIsTheSame) {
  const auto resident = load(open_weights(config));
  options.residency = Residency::kOffloaded;
  const auto offloaded = load(open_weights(config));
  EXPECT_TRUE(is_equal(logits_of(*resident), logits_of(*offloaded)));
  EXPECT_TRUE(is_equal(resident->quantized(in_proj)[1].value, offloaded->quantized(in_proj)[1].value));
}

TEST_F(Quantised, WhatCannotBeHeldIsRefused) {
  const auto refused = [&](const ChangedSource& source, std::initializer_list<const char*> parts) {
    expect_parts(refusal<InputError>([&] { load(std::make_shared<const ChangedSource>(source)); }), parts);
  };
  ChangedSource source(open_weights(config));
  HostTensor nan = source.read(in_proj);
  nan.values<float>()[16] = std::numeric_limits<float>::quiet_NaN();
  source.replaced[in_proj] = nan;
  refused(source, {"in_proj.weight", "[1, 1]", "not finite"});
  source.replaced.clear();
  options.quantized.push_back("backbone.layers.9.mixer.in_proj.weight");
  refused(source, {"layers.9", "quantised"});
  options.quantization = "";
  refused(source, {"not to what"});
  options.quantization = "fp4";
  EXPECT_THROW(load(open_weights(config)), UnsupportedError);
}

// Codes that no quantiser chooses: a model that holds them took them from the source.
class StoredQuantised final : public WeightSource {
 public:
  StoredQuantised(std::shared_ptr<const WeightSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {
    weight_ = quantize_nf4(to_aten(source_->read(name_)), false);
    for (uint8_t& byte : weight_.codes.values<uint8_t>()) byte = 0x11;
  }
  std::vector<std::string> names() const override { return source_->names(); }
  bool has(const std::string& name) const override { return source_->has(name); }
  HostTensor read(const std::string& name) const override {
    return name == name_ ? dequantized(weight_, source_->read(name).shape()) : source_->read(name);
  }
  std::optional<Nf4Weight> nf4(const std::string& name) const override {
    return name == name_ ? std::optional(weight_) : std::nullopt;
  }

 private:
  std::shared_ptr<const WeightSource> source_;
  std::string name_;
  Nf4Weight weight_;
};

TEST_F(Quantised, StoredCodesAreHeldAsTheyAre) {
  const auto source = std::make_shared<const StoredQuantised>(open_weights(config), in_proj);
  const auto model = load(source);
  EXPECT_TRUE(is_equal(model->quantized(in_proj)[0].value, source->nf4(in_proj)->codes));
  EXPECT_TRUE(is_equal(model->weight(in_proj), source->read(in_proj)));
  options.quantization = "nf4dq";
  expect_parts(refusal<InputError>([&] { load(source); }), {"in_proj.weight", "stored as nf4"});
  options = {.quantization = "nf4", .quantized = {"backbone.layers.1.mixer.out_proj.weight"}};
  expect_parts(refusal<InputError>([&] { load(source); }), {"in_proj.weight", "kept as it is"});
  options = {};
  EXPECT_TRUE(is_equal(load(source)->weight(in_proj), source->read(in_proj)));
}

// The parts of a loaded model as bitsandbytes would save them.
void save(const ModelConfig& config, const Model& model, const std::filesystem::path& folder) {
  std::vector<NamedTensor> tensors;
  const auto source = open_weights(config);
  for (const std::string& name : source->names()) {
    const std::vector<NamedTensor> parts = model.quantized(name);
    if (parts.empty()) {
      tensors.push_back({name, source->read(name)});
      continue;
    }
    HostTensor column(DType::kU8, {parts[0].value.count(), 1});
    std::ranges::copy(parts[0].value.bytes(), column.bytes().begin());
    nlohmann::json state = {{"quant_type", "nf4"}, {"blocksize", 64}, {"dtype", "float32"}};
    state["shape"] = source->read(name).shape();
    const auto map = [](std::span<const float> levels) {
      return HostTensor({static_cast<int64_t>(levels.size())}, std::vector<float>(levels.begin(), levels.end()));
    };
    tensors.push_back({name, column});
    tensors.push_back({name + ".absmax", parts[1].value});
    tensors.push_back({name + ".quant_map", map(nf4_levels())});
    if (parts.size() == 4) {
      state.update({{"nested_blocksize", 256}, {"nested_dtype", "float32"}});
      state["nested_offset"] = static_cast<double>(parts[3].value.values<float>()[0]);
      tensors.push_back({name + ".nested_absmax", parts[2].value});
      tensors.push_back({name + ".nested_quant_map", map(nf4_scale_levels())});
    }
    const std::string text = state.dump();
    HostTensor bytes(DType::kU8, {static_cast<int64_t>(text.size())});
    std::memcpy(bytes.bytes().data(), text.data(), text.size());
    tensors.push_back({name + ".quant_state.bitsandbytes__nf4", bytes});
  }
  write_safetensors(folder / "model.safetensors", tensors, {});
}

TEST_F(Quantised, ASavedFileIsTheModelQuantisedInMemory) {
  for (const char* kind : {"nf4", "nf4dq"}) {
    options.quantization = kind;
    const ScratchFolder folder;
    const auto memory = load(open_weights(config));
    save(config, *memory, folder.path());
    ModelConfig checkpoint = config;
    checkpoint.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    checkpoint.weights.directory = folder.path();
    const auto file = load(open_weights(checkpoint));
    for (const std::string& name : options.quantized) {
      ASSERT_EQ(file->quantized(name).size(), memory->quantized(name).size());
      for (size_t part = 0; part < memory->quantized(name).size(); ++part)
        EXPECT_TRUE(is_equal(file->quantized(name)[part].value, memory->quantized(name)[part].value)) << name << part;
      EXPECT_TRUE(is_equal(file->weight(name), memory->weight(name))) << name;
    }
    EXPECT_TRUE(is_equal(logits_of(*file), logits_of(*memory)));
  }
}

}  // namespace
}  // namespace assay::reference

#include "cases/spec/checkpoint.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/export.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/weights.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Checkpoint : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::path(testing::TempDir()) / "assay_checkpoint_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    config_.model = "mamba";
    config_.name = "here";
    config_.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    config_.weights.directory = folder_;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static NamedTensor tensor(const std::string& name, float value) {
    return {name, HostTensor({1}, std::vector<float>{value})};
  }
  void write_shards(const std::string& weight_map) const {
    write_safetensors(folder_ / "one.safetensors", {tensor("a", 1), tensor("b", 2)}, {});
    write_safetensors(folder_ / "two.safetensors", {tensor("c", 3)}, {});
    write_file(folder_ / "model.safetensors.index.json", R"({"metadata": {}, "weight_map": )" + weight_map + "}");
  }
  std::string refusal() const {
    try {
      open_checkpoint(folder_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const std::string& weight_map, const std::string& part) const {
    write_shards(weight_map);
    EXPECT_NE(refusal().find(part), std::string::npos) << weight_map << "\n gave: " << refusal();
  }

  fs::path folder_;
  ModelConfig config_;
};

TEST_F(Checkpoint, ShardsAreOneSource) {
  write_shards(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})");
  const auto source = open_checkpoint(folder_);
  EXPECT_EQ(source->names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(source->read("b").at(0), 2);
  EXPECT_EQ(source->read("c").at(0), 3);
  EXPECT_FALSE(source->has("d"));
  EXPECT_THROW(source->read("d"), InputError);
}

TEST_F(Checkpoint, SingleFileComesBeforeAnIndex) {
  write_shards(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})");
  write_safetensors(folder_ / "model.safetensors", {tensor("a", 9)}, {});
  EXPECT_EQ(open_checkpoint(folder_)->read("a").at(0), 9);
}

TEST_F(Checkpoint, AnIndexMustTellTheTruth) {
  expect_refused(R"({"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"})", "/weight_map/b");
  expect_refused(R"({"a": "one.safetensors", "c": "two.safetensors"})", "tensor 'b' in 'one.safetensors'");
  expect_refused(R"({"a": "../one.safetensors"})", "not a file of this folder");
  expect_refused(R"({"a": "three.safetensors"})", "/weight_map/a: its shard 'three.safetensors' is not there");
  expect_refused(R"({"a": 1})", "/weight_map/a");
  expect_refused(R"({"a": "one.safetensors", "a": "one.safetensors"})", "twice");
  expect_refused(R"([])", "weight_map");
  write_file(folder_ / "model.safetensors.index.json", "[]");
  EXPECT_NE(refusal().find("weight_map"), std::string::npos);
}

TEST_F(Checkpoint, ATensorInTwoShardsIsAnError) {
  write_safetensors(folder_ / "one.safetensors", {tensor("a", 1), tensor("b", 2)}, {});
  write_safetensors(folder_ / "two.safetensors", {tensor("c", 3), tensor("a", 1)}, {});
  for (const char* first : {"one", "two"}) {
    write_file(folder_ / "model.safetensors.index.json", std::string(R"({"weight_map": {"a": ")") + first +
                                                             R"(.safetensors", "b": "one.safetensors",
        "c": "two.safetensors"}})");
    const std::string other = std::string(first) == "one" ? "two" : "one";
    EXPECT_NE(refusal().find("tensor 'a' in '" + other + ".safetensors', which holds it"), std::string::npos)
        << refusal();
  }
}

TEST_F(Checkpoint, ShardsThatAreNoSafetensorsFilesAreNamed) {
  write_shards(R"({"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})");
  write_file(folder_ / "two.safetensors", "");
  EXPECT_NE(refusal().find("two.safetensors: is too short"), std::string::npos) << refusal();
  write_file(folder_ / "model.safetensors.index.json", "");
  EXPECT_NE(refusal().find("model.safetensors.index.json"), std::string::npos) << refusal();
}

TEST_F(Checkpoint, FoldersWithoutACheckpoint) {
  EXPECT_NE(refusal().find("has no model.safetensors"), std::string::npos);
  write_file(folder_ / "pytorch_model.bin", "PK");
  EXPECT_NE(refusal().find("pytorch_model.bin: is too short for an archive"), std::string::npos) << refusal();
  EXPECT_THROW(open_checkpoint(folder_ / "missing"), InputError);
}

TEST_F(Checkpoint, NamesAreCheckedBothWays) {
  const std::vector<WeightSpec> table = {{"norm.weight", {1}, Role::kNorm, 1, {}}, {"D", {1}, Role::kSkip, 1, {}}};
  const auto refusal_of = [&](const std::vector<NamedTensor>& tensors) -> std::string {
    write_safetensors(folder_ / "model.safetensors", tensors, {});
    try {
      check_names(table, *open_checkpoint(folder_));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal_of({tensor("norm.weight", 1), tensor("D", 1)}), "");
  const std::string file = (folder_ / "model.safetensors").string();
  EXPECT_EQ(refusal_of({tensor("norm.weight", 1)}),
            file + " weight 'D': is missing\n  nearest there: none is close; there is norm.weight");
  EXPECT_EQ(refusal_of({}), file + " weight 'norm.weight': is missing\n  no tensor at all is there");
  // A copy of the tied head, as some files have it.
  EXPECT_EQ(refusal_of({tensor("norm.weight", 1), tensor("D", 1), tensor("lm_head.weight", 1)}), "");
  const std::string missing = refusal_of({tensor("nrom.weight", 1), tensor("D", 1)});
  EXPECT_NE(missing.find("'norm.weight'"), std::string::npos) << missing;
  EXPECT_NE(missing.find("nrom.weight"), std::string::npos) << missing;
  const std::string unexpected = refusal_of({tensor("norm.weight", 1), tensor("D", 1), tensor("norm.weights", 1)});
  EXPECT_NE(unexpected.find("'norm.weights'"), std::string::npos) << unexpected;
}

TEST_F(Checkpoint, SixteenBitWeightsAreWidened) {
  HostTensor half(DType::kF16, {2}), brain(DType::kBF16, {2});
  half.values<uint16_t>()[0] = 0x3e00;   // 1.5
  half.values<uint16_t>()[1] = 0x0001;   // 2^-24
  brain.values<uint16_t>()[0] = 0xbfc0;  // -1.5
  write_safetensors(folder_ / "model.safetensors", {{"h", half}, {"b", brain}}, {});
  const auto source = open_checkpoint(folder_);
  EXPECT_EQ(source->read("h").dtype(), DType::kF16);
  const HostTensor h = read_weight({"h", {2}, Role::kNorm, 1, {}}, *source);
  EXPECT_EQ(h.dtype(), DType::kF32);
  EXPECT_EQ(h.values<float>()[0], 1.5f);
  EXPECT_EQ(h.values<float>()[1], 0x1p-24f);
  EXPECT_EQ(read_weight({"b", {2}, Role::kNorm, 1, {}}, *source).values<float>()[0], -1.5f);
}

TEST_F(Checkpoint, WeightsThatCannotBeUsedAreNamed) {
  HostTensor wide(DType::kF64, {1});
  wide.values<double>()[0] = 1e300;
  write_safetensors(folder_ / "model.safetensors",
                    {{"nan", HostTensor({2, 2}, std::vector<float>{1, 2, std::nanf(""), 4})},
                     {"inf", HostTensor({1}, std::vector<float>{-std::numeric_limits<float>::infinity()})},
                     {"wide", wide},
                     {"whole", HostTensor({1}, std::vector<int64_t>{1})}},
                    {});
  const auto source = open_checkpoint(folder_);
  const auto refusal_of = [&](const std::string& name, const Shape& shape) -> std::string {
    try {
      read_weight({name, shape, Role::kNorm, 1, {}}, *source);
    } catch (const InputError& error) {
      EXPECT_NE(error.where().find("'" + name + "'"), std::string::npos);
      return error.problem();
    }
    return "";
  };
  EXPECT_EQ(refusal_of("nan", {2, 2}), "element [1, 0] is nan");
  EXPECT_EQ(refusal_of("nan", {4}), "expected shape [4], got [2, 2]");
  EXPECT_EQ(refusal_of("inf", {1}), "element [0] is -inf");
  EXPECT_EQ(refusal_of("wide", {1}), "element [0] is 1e+300");
  EXPECT_EQ(refusal_of("whole", {1}), "expected a float dtype, got int64");
  EXPECT_THROW(read_weight({"absent", {1}, Role::kNorm, 1, {}}, *source), InputError);
}

ModelConfig tiny(const std::string& model) {
  return read_config(fs::path(ASSAY_ROOT) / "cases" / "models" / model / "tiny.config.json");
}

TEST_F(Checkpoint, AnExportHoldsTheWeightsAndTheirDigests) {
  for (const char* model : {"mamba", "mamba2"}) {
    const ModelConfig config = tiny(model);
    write_file(folder_ / "other", "kept");
    export_model(config, folder_);
    EXPECT_EQ(read_file(folder_ / "other"), "kept");

    const auto manifest = read_json(folder_ / "assay.json");
    EXPECT_EQ(manifest.at("schema"), "assay.export/1");
    EXPECT_EQ(manifest.at("model"), model);
    EXPECT_EQ(manifest.at("config"), "tiny");
    EXPECT_EQ(manifest.at("config_digest"), config.digest);
    EXPECT_EQ(manifest.at("inputs").at("greedy5").at("greedy"), 24);
    EXPECT_EQ(manifest.at("inputs").at("prompt33").at("tokens").size(), 33u);
    EXPECT_EQ(manifest.at("inputs").at("prompt33").at("cuts"), config.state_cuts);
    EXPECT_EQ(manifest.at("inputs").at("greedy5").at("record"), "logits");
    EXPECT_EQ(manifest.at("inputs").at("greedy5").at("cuts"), std::vector<int64_t>{29});
    EXPECT_FALSE(manifest.at("inputs").at("greedy5").contains("beams"));
    EXPECT_EQ(manifest.at("inputs").at("beams5").at("beams").at("width"), 3);
    EXPECT_EQ(manifest.at("probes").at(0).at("follows"), "");
    EXPECT_EQ(manifest.at("probes").at(0).at("name"), "embed");
    EXPECT_EQ(manifest.at("probes").back().at("is_state"), true);

    ModelConfig exported = config;
    exported.weights = config_.weights;
    const auto source = open_weights(exported), drawn = open_weights(config);
    ASSERT_EQ(source->names().size(), drawn->names().size());
    ASSERT_EQ(manifest.at("weights").size(), drawn->names().size());
    for (const std::string& name : drawn->names()) {
      const HostTensor tensor = source->read(name);
      EXPECT_EQ(tensor.dtype(), DType::kF32);
      EXPECT_EQ(sha256(tensor.bytes()), sha256(drawn->read(name).bytes())) << name;
      EXPECT_EQ(manifest.at("weights").at(name).at("sha256"), sha256(tensor.bytes())) << name;
      EXPECT_EQ(manifest.at("weights").at(name).at("shape"), tensor.shape()) << name;
    }
    const auto fields = read_json(folder_ / "config.json");
    EXPECT_EQ(fields.at("model_type"), model);
    EXPECT_EQ(fields.at("hidden_size"), 24);
    EXPECT_EQ(fields.at("architectures").at(0), model_spec(model).original_class);
  }
}

TEST_F(Checkpoint, ExportGoesOnlyIntoAFolder) {
  write_file(folder_ / "file", "");
  EXPECT_THROW(export_model(tiny("mamba"), folder_ / "file"), HarnessError);
  EXPECT_THROW(export_model(tiny("mamba"), folder_ / "file" / "below"), HarnessError);
}

// A checkpoint exported again: the same weights, checked on the way.
TEST_F(Checkpoint, ExportOfACheckpointChecksIt) {
  ModelConfig config = tiny("mamba");
  export_model(config, folder_);
  config.weights = config_.weights;
  export_model(config, folder_ / "again");
  EXPECT_EQ(sha256(read_file(folder_ / "again" / "model.safetensors")),
            sha256(read_file(folder_ / "model.safetensors")));

  const auto source = open_weights(config);
  std::vector<NamedTensor> tensors;
  for (const std::string& name : source->names()) tensors.push_back({name, source->read(name)});
  tensors.push_back(tensor("backbone.extra", 1));
  write_safetensors(folder_ / "model.safetensors", tensors, {});
  EXPECT_THROW(export_model(config, folder_ / "again"), InputError);
  tensors.pop_back();
  tensors.back().value.values<float>()[0] = std::nanf("");
  write_safetensors(folder_ / "model.safetensors", tensors, {});
  EXPECT_THROW(export_model(config, folder_ / "again"), InputError);
  tensors.pop_back();
  write_safetensors(folder_ / "model.safetensors", tensors, {});
  EXPECT_THROW(export_model(config, folder_ / "again"), InputError);
}

}  // namespace
}  // namespace assay

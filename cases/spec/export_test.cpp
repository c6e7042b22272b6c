#include "cases/spec/export.hpp"

#include <gtest/gtest.h>

#include <set>

#include "cases/spec/checkpoint.hpp"
#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/weights.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Format = ExportOptions::Format;

class Export : public ::testing::Test {
 protected:
  std::string refusal(const ExportOptions& options) const {
    try {
      export_model(config_, folder_, options);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
  const ModelConfig config_ = read_config(fs::path(ASSAY_ROOT) / "cases/models/jamba/tiny.config.json");
};

TEST_F(Export, EveryFormHoldsTheSameWeights) {
  const auto drawn = open_weights(config_);
  const struct {
    Format format;
    int64_t shard_bytes;
    const char* file;
  } kForms[] = {{Format::kSafetensors, 0, "model.safetensors"},
                {Format::kSafetensors, 20'000, "model.safetensors.index.json"},
                {Format::kBin, 0, "pytorch_model.bin"},
                {Format::kBin, 20'000, "pytorch_model.bin.index.json"}};
  for (const auto& form : kForms) {
    const ScratchFolder folder;
    export_model(config_, folder.path(), {.format = form.format, .shard_bytes = form.shard_bytes});
    EXPECT_TRUE(fs::exists(folder.path() / form.file));
    EXPECT_TRUE(fs::exists(folder.path() / "config.json"));
    const auto digests = read_json(folder.path() / "assay.json").at("weights");
    EXPECT_EQ(digests.size(), drawn->names().size());
    ModelConfig exported = config_;
    exported.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    exported.weights.directory = folder.path();
    const auto source = open_weights(exported);
    EXPECT_EQ(source->names(), drawn->names());
    for (const std::string& name : drawn->names()) {
      EXPECT_EQ(sha256(source->read(name).bytes()), sha256(drawn->read(name).bytes())) << form.file << " " << name;
      EXPECT_EQ(digests.at(name).at("sha256"), sha256(drawn->read(name).bytes())) << form.file << " " << name;
    }
  }
}

TEST_F(Export, ShardsHoldWhatFits) {
  for (const Format format : {Format::kSafetensors, Format::kBin}) {
    const ScratchFolder folder;
    export_model(config_, folder.path(), {.layout = kFused, .format = format, .shard_bytes = 20'000});
    const bool is_bin = format == Format::kBin;
    const auto index =
        read_json(folder.path() / (is_bin ? "pytorch_model.bin.index.json" : "model.safetensors.index.json"));
    std::map<std::string, std::vector<int64_t>> shards;  // file to its tensors' bytes
    int64_t total = 0;
    const auto source = open_checkpoint(folder.path());
    for (const auto& [name, file] : index.at("weight_map").items()) {
      const auto bytes = static_cast<int64_t>(source->read(name).bytes().size());
      shards[file.get<std::string>()].push_back(bytes);
      total += bytes;
    }
    EXPECT_EQ(index.at("metadata").at("total_size"), total);
    EXPECT_GE(shards.size(), 3u);
    size_t number = 0;
    for (const auto& [file, tensors] : shards) {
      char name[64];
      std::snprintf(name, sizeof name, is_bin ? "pytorch_model-%05zu-of-%05zu.bin" : "model-%05zu-of-%05zu.safetensors",
                    ++number, shards.size());
      EXPECT_EQ(file, name);
      int64_t bytes = 0;
      for (const int64_t one : tensors) bytes += one;
      EXPECT_TRUE(bytes <= 20'000 || tensors.size() == 1) << file << " holds " << bytes;
    }
  }
}

TEST_F(Export, OneShardHasAnIndexToo) {
  export_model(config_, folder_, {.format = Format::kBin, .shard_bytes = int64_t{1} << 40});
  EXPECT_TRUE(fs::exists(folder_ / "pytorch_model-00001-of-00001.bin"));
  EXPECT_FALSE(open_checkpoint(folder_)->names().empty());
}

TEST_F(Export, WhatIsWrittenIsWhatIsRead) {
  export_model(config_, folder_, {.format = Format::kBin});
  EXPECT_EQ(refusal({.format = Format::kBin}), "");  // over itself
  EXPECT_NE(refusal({.format = Format::kBin, .shard_bytes = 1}).find("holds pytorch_model.bin, which would be read"),
            std::string::npos);
  EXPECT_EQ(refusal({.shard_bytes = 20'000}), "");
  EXPECT_NE(refusal({.format = Format::kBin}).find("holds model.safetensors.index.json, which would be read"),
            std::string::npos);
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.shard_bytes = 20'000}).find("holds model.safetensors, which"), std::string::npos);
  EXPECT_NE(refusal({.shard_bytes = -1}).find("0 or more"), std::string::npos);
}

TEST_F(Export, NotOntoTheWeightsThatAreRead) {
  export_model(config_, folder_);
  const std::string before = read_file(folder_ / "model.safetensors");
  ModelConfig checkpoint = config_;
  checkpoint.weights.kind = WeightsRecipe::Kind::kCheckpoint;
  checkpoint.weights.directory = folder_;
  EXPECT_THROW(export_model(checkpoint, folder_ / "."), InputError);
  EXPECT_EQ(read_file(folder_ / "model.safetensors"), before);
}

}  // namespace
}  // namespace assay

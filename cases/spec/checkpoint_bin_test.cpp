#include <gtest/gtest.h>

#include <filesystem>

#include "cases/spec/checkpoint.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/torch_bin.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

TEST(BinCheckpoint, ShardsAndTheirIndex) {
  const ScratchFolder temporary;
  const fs::path folder = temporary.path();
  const auto tensor = [](const std::string& name, float value) {
    return NamedTensor{name, HostTensor({1}, std::vector<float>{value})};
  };
  const auto write_bin = [&](const char* file, const std::vector<NamedTensor>& tensors) {
    std::vector<TensorHeader> headers;
    for (const NamedTensor& one : tensors) headers.push_back({one.name, one.value.dtype(), one.value.shape()});
    size_t at = 0;
    write_torch_bin(folder / file, headers, [&](const TensorHeader&) { return tensors[at++].value; });
  };
  const auto write_index = [&](const std::string& weight_map) {
    write_file(folder / "pytorch_model.bin.index.json", R"({"metadata": {}, "weight_map": )" + weight_map + "}");
  };
  const auto refusal = [&]() -> std::string {
    try {
      open_checkpoint(folder);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto expect_part = [&](const std::string& part) {
    EXPECT_NE(refusal().find(part), std::string::npos) << part << "\n gave: " << refusal();
  };
  write_bin("one.bin", {tensor("a", 1), tensor("b", 2)});
  write_bin("two.bin", {tensor("c", 3)});
  write_index(R"({"a": "one.bin", "b": "one.bin", "c": "two.bin"})");
  const auto source = open_checkpoint(folder);
  EXPECT_EQ(source->names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(source->read("b").at(0), 2);
  EXPECT_EQ(source->read("c").at(0), 3);
  EXPECT_EQ(source->where("c"), (folder / "two.bin").string() + " tensor 'c'");
  fs::remove(folder / "two.bin");
  EXPECT_EQ(source->read("b").at(0), 2);
  try {
    source->read("c");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("two.bin: tensor 'c' cannot be trusted: the file was removed"),
              std::string::npos)
        << error.what();
  }
  expect_part("/weight_map/c: its shard 'two.bin' is not there");
  write_bin("two.bin", {tensor("c", 3), tensor("d", 4)});
  expect_part("pytorch_model.bin.index.json: does not place tensor 'd' in 'two.bin'");
  write_index(R"({"a": "one.bin", "b": "two.bin", "c": "two.bin", "d": "two.bin"})");
  expect_part("/weight_map/b: 'two.bin' does not hold this tensor");
  write_index(R"({"a": "../one.bin"})");
  expect_part("not a file of this folder");
  // A single file comes before the index, and safetensors before both.
  write_bin("pytorch_model.bin", {tensor("a", 5)});
  EXPECT_EQ(open_checkpoint(folder)->read("a").at(0), 5);
  write_safetensors(folder / "one.safetensors", {tensor("a", 1)}, {});
  write_file(folder / "model.safetensors.index.json", R"({"weight_map": {"a": "one.safetensors"}})");
  EXPECT_EQ(open_checkpoint(folder)->read("a").at(0), 1);
  write_safetensors(folder / "model.safetensors", {tensor("a", 9)}, {});
  EXPECT_EQ(open_checkpoint(folder)->read("a").at(0), 9);
}

}  // namespace
}  // namespace assay

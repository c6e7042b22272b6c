#include <gtest/gtest.h>

#include <filesystem>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class SafetensorsInParts : public ::testing::Test {
 protected:
  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(SafetensorsInParts, WrittenInPartsIsTheSameFile) {
  const std::vector<NamedTensor> tensors = {{"b", HostTensor({2, 2}, std::vector<float>{1, 2, 3, 4})},
                                            {"a", HostTensor({1}, std::vector<int64_t>{5})}};
  write_safetensors(folder_ / "whole", tensors, {{"format", "pt"}});
  const std::vector<TensorHeader> headers = {{"b", DType::kF32, {2, 2}}, {"a", DType::kI64, {1}}};
  std::vector<std::string> asked;
  const auto read = [&](const TensorHeader& header) {
    asked.push_back(header.name);
    return tensors[asked.size() - 1].value;
  };
  write_safetensors(folder_ / "parts", headers, read, {{"format", "pt"}});
  EXPECT_EQ(asked, (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(read_file(folder_ / "parts"), read_file(folder_ / "whole"));
}

TEST_F(SafetensorsInParts, APromiseThatIsNotKeptLeavesNoFile) {
  const auto write = [&](const HostTensor& value) {
    write_safetensors(folder_ / "x", {{"a", DType::kF32, {2}}}, [&](const TensorHeader&) { return value; }, {});
  };
  EXPECT_THROW(write(HostTensor(DType::kF32, {3})), HarnessError);
  EXPECT_THROW(write(HostTensor(DType::kI64, {2})), HarnessError);
  EXPECT_THROW(
      write_safetensors(folder_ / "x", {{"a", DType::kF32, {2}}},
                        [](const TensorHeader&) -> HostTensor { throw InputError("a", "cannot be read"); }, {}),
      InputError);
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_NO_THROW(write(HostTensor(DType::kF32, {2})));
}

}  // namespace
}  // namespace assay

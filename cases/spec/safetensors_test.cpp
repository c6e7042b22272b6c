#include "cases/spec/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  fs::path write(const std::string& bytes) const {
    const fs::path file = folder_ / "x.safetensors";
    write_file(file, bytes);
    return file;
  }

  static std::string length_bytes(uint64_t length) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i));
    return bytes;
  }
  static std::string document(const std::string& header, size_t data_bytes) {
    return length_bytes(header.size()) + header + std::string(data_bytes, '\1');
  }

  // The error's text; empty when the file was accepted.
  std::string refusal(const std::string& bytes) const {
    try {
      open_safetensors(write(bytes));
    } catch (const InputError& error) {
      EXPECT_NE(error.where().find("x.safetensors"), std::string::npos) << error.what();
      return error.what();
    }
    return "";
  }
  void expect_refused(const std::string& header, size_t data_bytes, const std::string& part) const {
    const std::string text = refusal(document(header, data_bytes));
    EXPECT_NE(text.find(part), std::string::npos) << header << "\n gave: " << text << "\n not: " << part;
  }

  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(Safetensors, WrittenFilesReadBackBitForBit) {
  HostTensor half(DType::kBF16, {3});
  half.values<uint16_t>()[1] = 0x3f80;  // 1.0
  const std::vector<NamedTensor> tensors = {
      {"z.first", HostTensor({2, 2}, std::vector<float>{1, -0.0f, 3e-45f, -4})},
      {"a", HostTensor({1, 3}, std::vector<int64_t>{-1, 2, int64_t{1} << 62})},
      {"half", half},
      {"scalar", HostTensor(Shape{}, std::vector<float>{7})},
      {"nothing", HostTensor(DType::kF32, {0, 4})},
  };
  const fs::path file = folder_ / "x.safetensors";
  write_safetensors(file, tensors, {{"format", "pt"}});
  const auto source = open_safetensors(file);
  EXPECT_EQ(source->names().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const HostTensor back = source->read(tensor.name);
    EXPECT_EQ(back.dtype(), tensor.value.dtype());
    EXPECT_EQ(back.shape(), tensor.value.shape());
    EXPECT_TRUE(
        std::equal(back.bytes().begin(), back.bytes().end(), tensor.value.bytes().begin(), tensor.value.bytes().end()))
        << tensor.name;
  }
  EXPECT_EQ(source->read("half").at(1), 1.0);
}

// The layout as the format has it, read without our reader.
TEST_F(Safetensors, LayoutOfAWrittenFile) {
  const fs::path file = folder_ / "x.safetensors";
  write_safetensors(file,
                    {{"b", HostTensor({1}, std::vector<float>{1})}, {"a", HostTensor({2}, std::vector<float>{2, 3})}},
                    {{"format", "pt"}});
  const std::string bytes = read_file(file);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | static_cast<unsigned char>(bytes.at(static_cast<size_t>(i)));
  EXPECT_EQ(length % 8, 0u);
  ASSERT_EQ(bytes.size(), 8 + length + 12);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header, nlohmann::json::parse(R"({"__metadata__": {"format": "pt"},
      "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
      "a": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})"));
  EXPECT_EQ(bytes.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12));
}

TEST_F(Safetensors, WriterRefusesNamesThatCannotBeRead) {
  const HostTensor one({1}, std::vector<float>{1});
  const fs::path file = folder_ / "x.safetensors";
  EXPECT_THROW(write_safetensors(file, {{"a", one}, {"a", one}}, {}), InputError);
  EXPECT_THROW(write_safetensors(file, {{"__metadata__", one}}, {}), InputError);
  EXPECT_THROW(write_safetensors(file, {{"\xff", one}}, {}), InputError);
  EXPECT_FALSE(fs::exists(file));
  EXPECT_THROW(write_safetensors(folder_ / "missing" / "x.safetensors", {{"a", one}}, {}), HarnessError);
}

TEST_F(Safetensors, HeadersAndElementsWithoutTheWholeTensor) {
  const fs::path file = folder_ / "x.safetensors";
  write_safetensors(file,
                    {{"z", HostTensor({1}, std::vector<float>{9})},
                     {"a", HostTensor({2, 3}, std::vector<int64_t>{0, 1, 2, 3, 4, 5})}},
                    {});
  const auto source = open_safetensors(file);
  EXPECT_EQ(source->header("a").shape, (Shape{2, 3}));
  EXPECT_EQ(source->header("a").dtype, DType::kI64);
  const HostTensor part = source->read_elements("a", 2, 3);
  EXPECT_EQ(part.shape(), Shape{3});
  EXPECT_EQ(part.at(0), 2);
  EXPECT_EQ(part.at(2), 4);
  EXPECT_EQ(source->read_elements("a", 6, 0).count(), 0);
  EXPECT_THROW(source->read_elements("a", 5, 2), InputError);
  EXPECT_THROW(source->read_elements("a", -1, 2), InputError);
  EXPECT_THROW(source->read_elements("a", 1, INT64_MAX), InputError);
  EXPECT_THROW(source->header("b"), InputError);
  EXPECT_NE(source->where("a").find("x.safetensors tensor 'a'"), std::string::npos);
}

TEST_F(Safetensors, MissingTensorNamesTheNearest) {
  const auto source =
      open_safetensors(write(document(R"({"alpha":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4)));
  try {
    source->read("alhpa");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("alpha"), std::string::npos) << error.what();
  }
}

TEST_F(Safetensors, HeadersThatLieAboutTheirLength) {
  EXPECT_NE(refusal("").find("too short"), std::string::npos);
  EXPECT_NE(refusal("1234567").find("too short"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(100) + "{}").find("header of 100 bytes in a file of 10"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(UINT64_MAX) + "{}").find("header of 18446744073709551615"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(UINT64_MAX - 7) + "{}"), "");  // 8 + length wraps to 0
  EXPECT_NE(refusal(length_bytes(0) + "{}").find("does not start with '{'"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(2) + "[]").find("does not start with '{'"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(3) + " {}").find("does not start with '{'"), std::string::npos);
  EXPECT_NE(refusal(length_bytes(2) + "{ "), "");
  EXPECT_NE(refusal(length_bytes(5) + "{}abc"), "");
  EXPECT_NE(refusal(length_bytes(3) + "{a}"), "");
  EXPECT_NE(refusal(length_bytes(2) + "{\""), "");
}

// A sparse file: 100 MB and a little of header, of which nothing may be read.
TEST_F(Safetensors, HeaderBeyondTheFormatsLimit) {
  const fs::path file = write(length_bytes(100'000'001) + "{");
  fs::resize_file(file, 200'000'000);
  try {
    open_safetensors(file);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("header of 100000001 bytes"), std::string::npos) << error.what();
  }
}

TEST_F(Safetensors, HostileEntries) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal(document(good, 8)), "");
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  expect_refused(entry(R"("F99")", "[2]", "[0,8]"), 8, "\"F99\" cannot be read");
  expect_refused(entry("4", "[2]", "[0,8]"), 8, "dtype 4");
  expect_refused(entry(R"("F32")", "[-2]", "[0,8]"), 8, "-2");
  expect_refused(entry(R"("F32")", "[2.0]", "[0,8]"), 8, "2.0");
  expect_refused(entry(R"("F32")", R"(["2"])", "[0,8]"), 8, "\"2\"");
  expect_refused(entry(R"("F32")", "2", "[0,8]"), 8, "shape must be an array");
  expect_refused(entry(R"("F32")", "[4294967296,4294967296]", "[0,8]"), 8, "64 bits");
  expect_refused(entry(R"("F32")", "[18446744073709551615]", "[0,8]"), 8, "too large");
  // 2^62 float32 are 2^64 bytes, which wraps to 0.
  expect_refused(entry(R"("F32")", "[4611686018427387904]", "[0,0]"), 0, "does not fill");
  expect_refused(entry(R"("F32")", "[2]", "[0,18446744073709551616]"), 8, "data_offsets");
  expect_refused(entry(R"("F32")", "[2]", "[18446744073709551615,18446744073709551615]"), 8, "ends at byte");
  expect_refused(entry(R"("F32")", "[3]", "[0,8]"), 8, "does not fill its 8 bytes");
  expect_refused(entry(R"("F32")", "[2]", "[8,0]"), 8, "reversed");
  expect_refused(entry(R"("F32")", "[2]", "[0,9]"), 8, "ends at byte 9 of 8");
  expect_refused(entry(R"("F32")", "[2]", "[-8,0]"), 8, "-8");
  expect_refused(entry(R"("F32")", "[2]", "[0]"), 8, "[begin, end]");
  expect_refused(entry(R"("F32")", "[2]", "[0,8,8]"), 8, "[begin, end]");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2]}})", 8, "exactly");
  expect_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})", 8, "exactly");
  expect_refused(R"({"a":7})", 8, "exactly");
}

TEST_F(Safetensors, DataCutShortOrTooLong) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  expect_refused(header, 7, "ends at byte 8 of 7");
  expect_refused(header, 0, "ends at byte 8 of 0");
  expect_refused(header, 9, "1 bytes after its last tensor");
  expect_refused("{}", 1, "1 bytes after");
}

TEST_F(Safetensors, EveryByteBelongsToOneTensor) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}";
  };
  EXPECT_EQ(refusal(document(two("[8,16]", "[0,8]"), 16)), "");
  expect_refused(two("[0,8]", "[0,8]"), 8, "overlaps 'a'");
  expect_refused(two("[0,8]", "[4,12]"), 12, "overlaps 'a'");
  expect_refused(two("[0,8]", "[12,20]"), 20, "leaves a hole after 'a'");
  expect_refused(two("[4,12]", "[12,20]"), 20, "leaves a hole after the start");
}

TEST_F(Safetensors, DuplicateNamesAndMetadata) {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  expect_refused(R"({"a":)" + tensor + R"(,"a":)" + tensor + "}", 4, "twice");
  expect_refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "twice");
  expect_refused(R"({"__metadata__":{"n":1}})", 0, "'n' must be a string");
  expect_refused(R"({"__metadata__":[]})", 0, "object of strings");
  EXPECT_EQ(refusal(document(R"({"__metadata__":{"n":"1"}})", 0)), "");
}

TEST_F(Safetensors, NotARegularFile) {
  EXPECT_THROW(open_safetensors(folder_), InputError);
  EXPECT_THROW(open_safetensors(folder_ / "missing"), InputError);
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(open_safetensors(pipe), InputError);  // must not wait for a writer
}

TEST_F(Safetensors, AFileThatShrinksAfterItWasOpenedIsAnError) {
  const fs::path file = write(document(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  const auto source = open_safetensors(file);
  EXPECT_NO_THROW(source->read("a"));
  fs::resize_file(file, fs::file_size(file) - 4);
  EXPECT_THROW(source->read("a"), InputError);
}

}  // namespace
}  // namespace assay

#include "cases/spec/torch_bin.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "cases/spec/crc32.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/testing/torch_bytes.hpp"
#include "cases/spec/weights.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using namespace testing;

using Tensors = std::vector<std::pair<std::string, std::string>>;

class TorchBin : public ::testing::Test {
 protected:
  fs::path write(const Tensors& tensors, const std::vector<std::string>& storages) const {
    const fs::path file = temporary_.path() / "w.bin";
    write_file(file, zip(torch_entries(pickle(dict(tensors)), storages)));
    return file;
  }
  std::vector<float> values(const std::string& value, const std::vector<std::string>& storages) const {
    const HostTensor read = open_torch_bin(write({{"a", value}}, storages))->read("a");
    const auto all = read.values<float>();
    return {all.begin(), all.end()};
  }
  void expect_refused(const std::string& value, const std::vector<std::string>& storages,
                      const std::string& part) const {
    std::string got;
    try {
      open_torch_bin(write({{"fine", tensor(storage("0", 1), 0, {}, {})}, {"a.weight", value}}, storages));
    } catch (const InputError& error) {
      got = error.what();
    }
    EXPECT_NE(got.find("w.bin tensor 'a.weight': "), std::string::npos) << part << "\n gave: " << got;
    EXPECT_NE(got.find(part), std::string::npos) << part << "\n gave: " << got;
  }

  const ScratchFolder temporary_;
};

const std::string kSix = floats({0, 1, 2, 3, 4, 5});

TEST_F(TorchBin, DenseTensorsAndViewsOfOneStorage) {
  const auto source = open_torch_bin(write({{"whole", tensor(storage("0", 6), 0, {2, 3}, {3, 1})},
                                            {"row", tensor(storage("0", 6), 3, {1, 3}, {100, 1})},
                                            {"one", tensor(storage("0", 6), 5, {}, {})},
                                            {"none", tensor(storage("1", 0), 0, {0, 4}, {4, 1})}},
                                           {kSix, ""}));
  EXPECT_EQ(source->names(), (std::vector<std::string>{"none", "one", "row", "whole"}));
  EXPECT_TRUE(source->has("row"));
  EXPECT_FALSE(source->has("archive"));
  EXPECT_EQ(source->read("whole").shape(), (Shape{2, 3}));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(source->read("whole").at(i), static_cast<double>(i));
  EXPECT_EQ(source->read("row").at(0), 3);
  EXPECT_EQ(source->read("one").shape(), Shape{});
  EXPECT_EQ(source->read("one").at(0), 5);
  EXPECT_EQ(source->read("none").shape(), (Shape{0, 4}));
  EXPECT_EQ(source->header("whole").shape, (Shape{2, 3}));
  const HostTensor part = source->read_elements("whole", 2, 3);
  EXPECT_EQ(part.shape(), Shape{3});
  EXPECT_EQ(part.at(0), 2);
  EXPECT_EQ(part.at(2), 4);
  EXPECT_THROW(source->read_elements("whole", 4, 3), InputError);
  EXPECT_THROW(source->read_elements("whole", -1, 1), InputError);
  EXPECT_THROW(source->read("hole"), InputError);
}

TEST_F(TorchBin, StridesAreGathered) {
  EXPECT_EQ(values(tensor(storage("0", 6), 0, {3, 2}, {1, 3}), {kSix}), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values(tensor(storage("0", 6), 1, {2, 2}, {3, 1}), {kSix}), (std::vector<float>{1, 2, 4, 5}));
  EXPECT_EQ(values(tensor(storage("0", 6), 1, {3}, {2}), {kSix}), (std::vector<float>{1, 3, 5}));
  // [2, 3, 1, 2] of 24 elements, dimensions 0 and 1 exchanged, every second of the last.
  std::vector<float> many(24);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  EXPECT_EQ(values(tensor(storage("0", 24), 1, {2, 3, 1, 2}, {4, 8, 77, 2}), {floats(many)}),
            (std::vector<float>{1, 3, 9, 11, 17, 19, 5, 7, 13, 15, 21, 23}));
  const auto source = open_torch_bin(write({{"a", tensor(storage("0", 6), 0, {3, 2}, {1, 3})}}, {kSix}));
  EXPECT_EQ(source->read_elements("a", 1, 3).at(0), 3);
}

TEST_F(TorchBin, SixteenBitAndWholeNumbers) {
  const auto source = open_torch_bin(
      write({{"h", tensor(storage("0", 2, "HalfStorage"), 0, {2}, {1})},
             {"b", tensor(storage("1", 2, "BFloat16Storage"), 0, {2}, {1})},
             {"u", tensor(storage("2", 2, "ByteStorage"), 0, {2}, {1})},
             {"i", tensor(storage("3", 1, "LongStorage"), 0, {1}, {1})}},
            {std::string("\0\x3e\1\0", 4), std::string("\xc0\xbf\0\0", 4), "\x07\xff", bytes_of(1ull << 40, 8)}));
  EXPECT_EQ(source->read("h").dtype(), DType::kF16);
  EXPECT_EQ(source->read("h").at(0), 1.5);
  EXPECT_EQ(source->read("h").at(1), 0x1p-24);
  EXPECT_EQ(source->read("b").dtype(), DType::kBF16);
  EXPECT_EQ(source->read("b").at(0), -1.5);
  EXPECT_EQ(source->read("u").at(1), 255);
  EXPECT_EQ(source->read("i").at(0), 0x1p40);
}

TEST_F(TorchBin, TensorsThatAreNotInTheirStorage) {
  expect_refused(tensor(storage("1", 6), 0, {2, 3}, {3, 1}), {"1234"}, "its storage 'data/1' is not in the archive");
  expect_refused(tensor(storage("1", 7), 0, {2, 3}, {3, 1}), {"1234", kSix},
                 "'data/1' has 24 bytes, not the 7 float32");
  expect_refused(tensor(storage("1", 5), 0, {5}, {1}), {"1234", kSix}, "'data/1' has 24 bytes, not the 5 float32");
  expect_refused(tensor(storage("1", INT64_MAX), 0, {5}, {1}), {"1234", kSix},
                 "has 24 bytes, not the 9223372036854775807");
  expect_refused(tensor(storage("1", 6), 1, {2, 3}, {3, 1}), {"1234", kSix}, "offset 1 reach beyond the 6 elements");
  expect_refused(tensor(storage("1", 6), 7, {0}, {1}), {"1234", kSix}, "offset 7 reach beyond");
  expect_refused(tensor(storage("1", 6), INT64_MAX, {2}, {1}), {"1234", kSix}, "reach beyond the 6 elements");
  expect_refused(tensor(storage("1", 6), 0, {7}, {1}), {"1234", kSix}, "reach beyond the 6 elements");
  expect_refused(tensor(storage("1", 6), 0, {2, 3}, {4, 1}), {"1234", kSix}, "reach beyond the 6 elements");
  expect_refused(tensor(storage("1", 6), 0, {3}, {INT64_MAX}), {"1234", kSix}, "reaches beyond 64 bits");
  expect_refused(tensor(storage("1", 6), 0, {1 << 30, 1 << 30, 1 << 30}, {1, 1, 1}), {"1234", kSix}, "64 bits");
  // One element as a terabyte.
  expect_refused(tensor(storage("1", 6), 0, {1 << 20, 1 << 20}, {0, 0}), {"1234", kSix}, "has elements that overlap");
  expect_refused(tensor(storage("1", 6), 0, {3, 3}, {1, 1}), {"1234", kSix}, "has elements that overlap");
  expect_refused(tensor(storage("0", 2, "HalfStorage"), 0, {2}, {1}), {"1234"},
                 "is of storage 0 with 2 float16 elements, which is one of 1 float32 for 'fine'");
}

TEST_F(TorchBin, DamageIsFoundWhereItIsRead) {
  auto entries = torch_entries(pickle(dict({{"a", tensor(storage("0", 6), 0, {6}, {1})},
                                            {"part", tensor(storage("0", 6), 2, {2}, {1})},
                                            {"b", tensor(storage("1", 6), 0, {6}, {1})}})),
                               {kSix, kSix});
  entries[2].crc = entries[3].crc = crc32(reinterpret_cast<const std::byte*>(kSix.data()), kSix.size());
  entries[2].bytes[0] ^= 1;  // outside of `part`
  const fs::path file = temporary_.path() / "w.bin";
  write_file(file, zip(entries));
  const auto source = open_torch_bin(file);
  EXPECT_EQ(source->read("b").at(5), 5);
  EXPECT_EQ(source->read_elements("b", 5, 1).at(0), 5);
  for (const char* name : {"a", "part"}) try {
      source->read(name);
      FAIL();
    } catch (const InputError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("w.bin entry 'archive/data/0': tensor '" + std::string(name) + "' is damaged"),
                std::string::npos)
          << text;
    }
}

TEST_F(TorchBin, FilesThatChangeWhileTheyAreRead) {
  const auto refusal_after = [&](void (*change)(const fs::path&)) -> std::string {
    const fs::path file = write({{"a", tensor(storage("0", 6), 0, {6}, {1})}}, {kSix});
    fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
    const auto source = open_torch_bin(file);
    EXPECT_EQ(source->read("a").at(5), 5);
    change(file);
    try {
      source->read("a");
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  const auto expect = [&](void (*change)(const fs::path&), const std::string& part) {
    const std::string got = refusal_after(change);
    EXPECT_NE(got.find("w.bin: tensor 'a' " + part), std::string::npos) << part << "\n gave: " << got;
  };
  expect([](const fs::path& file) { fs::resize_file(file, 100); }, "");
  expect([](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); }, "cannot be trusted");
  expect([](const fs::path& file) { fs::remove(file); }, "cannot be trusted: the file was removed");
  expect([](const fs::path& file) { write_file(file, "another"); },
         "cannot be trusted: the file was removed or replaced");
  expect([](const fs::path& file) { std::fstream(file, std::ios::in | std::ios::out) << "PK"; },
         "cannot be trusted: the file was written to");
}

TEST_F(TorchBin, WeightsThatAreNotFiniteAreNamed) {
  const auto source = open_torch_bin(
      write({{"norm.weight", tensor(storage("0", 2), 0, {2}, {1})}}, {std::string("\0\0\0\0\0\0\xc0\x7f", 8)}));
  try {
    read_weight({"norm.weight", {2}, Role::kNorm, 1, {}}, *source);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("w.bin tensor 'norm.weight': element [1] is nan"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace assay

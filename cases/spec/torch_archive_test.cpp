#include "cases/spec/torch_archive.hpp"

#include <gtest/gtest.h>

#include "cases/spec/crc32.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/testing/torch_bytes.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using testing::torch_entries;
using testing::zip;
using testing::ZipEntry;

uint32_t crc_of(const std::string& bytes) {
  return crc32(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
}

class Archive : public ::testing::Test {
 protected:
  fs::path write(const std::string& bytes) const {
    write_file(temporary_.path() / "w.bin", bytes);
    return temporary_.path() / "w.bin";
  }
  // Of opening and of reading every entry.
  std::string refusal(const std::string& bytes) const {
    try {
      const TorchArchive archive(write(bytes));
      for (const std::string& name : archive.names()) archive.read_text(*archive.find(name), 1000);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  void expect_refused(const std::string& bytes, const std::string& part) const {
    const std::string got = refusal(bytes);
    EXPECT_NE(got.find("w.bin"), std::string::npos) << part << "\n gave: " << got;
    EXPECT_NE(got.find(part), std::string::npos) << part << "\n gave: " << got;
  }
  // The good archive with entry 2, data/0, changed.
  void expect_refused(void (*change)(ZipEntry&), const std::string& part) const {
    auto entries = torch_entries("pickle", {"12345678", "abc"});
    change(entries[2]);
    expect_refused(zip(entries), part);
  }

  const ScratchFolder temporary_;
};

TEST(Crc32, IsThatOfZip) {
  EXPECT_EQ(crc_of("123456789"), 0xcbf43926u);  // the check value of the CRC catalogues
  EXPECT_EQ(crc_of(""), 0u);
  EXPECT_EQ(crc_of("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
  const std::string text = "123456789";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  EXPECT_EQ(crc32(bytes + 2, 7, crc32(bytes, 2)), 0xcbf43926u);
}

TEST_F(Archive, EntriesAreBelowTheirFolder) {
  auto entries = torch_entries("pickle", {"12345678", ""});
  entries[2].crc = crc_of("12345678");
  for (const bool is_wide : {false, true}) {
    testing::ZipEnd end;
    end.is_wide = is_wide;
    const TorchArchive archive(write(zip(entries, end)));
    EXPECT_EQ(archive.names(), (std::vector<std::string>{"byteorder", "data.pkl", "data/0", "data/1", "version"}));
    EXPECT_EQ(archive.find("data/2"), nullptr);
    EXPECT_EQ(archive.find("archive/data/0"), nullptr);
    EXPECT_EQ(archive.read_text(*archive.find("data.pkl"), 6), "pickle");
    std::string part(3, '\0');
    archive.read(*archive.find("data/0"), 2, reinterpret_cast<std::byte*>(part.data()), 3, "x");
    EXPECT_EQ(part, "345");
    EXPECT_EQ(archive.find("data/1")->size, 0u);
    EXPECT_THROW(archive.read_text(*archive.find("data.pkl"), 5), InputError);
  }
}

// Sizes and checksum behind the data, zeros in front of it: torch's writer, and others that write a stream.
TEST_F(Archive, SizesBehindTheData) {
  auto entries = torch_entries("pickle", {"12345678"});
  entries[2].flags = 8;
  entries[2].local_size = 0;
  EXPECT_EQ(refusal(zip(entries)), "");
  entries[2].flags = 0;
  expect_refused(zip(entries), "entry 'archive/data/0': has 0 bytes by its own header and 8 by the directory");
}

TEST_F(Archive, NotAnArchive) {
  const std::string good = zip(torch_entries("pickle", {"12345678"}));
  EXPECT_EQ(refusal(good), "");
  expect_refused("", "is not an archive");
  expect_refused("PK", "too short");
  expect_refused(std::string(500, 'x'), "is not an archive");
  expect_refused(
      "\x80\x02\x8a\x0a"
      "l\xfc\x9c"
      "F\xf9 j\xa8P\x19.",
      "torch's format before 1.6");
  for (const size_t bytes : {good.size() - 1, good.size() - 30, good.size() / 2, size_t{60}, size_t{30}})
    expect_refused(good.substr(0, bytes), "no end record in its last 22 bytes");
  expect_refused(good + "x", "no end record in its last 22 bytes");
  expect_refused("PK" + good, "its zip64 locator says byte");
  expect_refused(zip({}), "is an empty archive");
  EXPECT_THROW(TorchArchive(temporary_.path()), InputError);
  EXPECT_THROW(TorchArchive(temporary_.path() / "absent"), InputError);
}

TEST_F(Archive, EndRecordsThatLie) {
  const auto entries = torch_entries("pickle", {"12345678"});
  const auto refused = [&](const testing::ZipEnd& lies, const std::string& part) {
    expect_refused(zip(entries, lies), part);
  };
  refused({.begin = 3}, "its end record and its zip64 record differ");
  refused({.entries = 3}, "its end record and its zip64 record differ");
  refused({.begin = 3, .is_wide = false}, "does not end where the end record begins");
  refused({.bytes = 0x7fffffff, .is_wide = false}, "does not end where the end record begins");
  refused({.entries = 3, .is_wide = false}, "its directory holds more than the 3 entries");
  refused({.entries = 5, .is_wide = false}, "its directory holds 4 entries and says 5");
  refused({.bytes = 0xffffffff, .wide_bytes = INT64_MAX}, "does not end where the end record begins");
  refused({.wide_bytes = 46}, "its end record and its zip64 record differ");
  refused({.wide_at = 7}, "its zip64 locator says byte 7");
  std::string volumes = zip(entries);
  volumes[volumes.size() - 18] = 1;
  expect_refused(volumes, "one of several volumes");
}

TEST_F(Archive, NamesThatLeaveTheFolder) {
  expect_refused([](ZipEntry& entry) { entry.name = "archive/../../evil"; },
                 "'archive/../../evil': has a name that leaves");
  expect_refused([](ZipEntry& entry) { entry.name = "../data/0"; }, "has a name that leaves its folder");
  expect_refused([](ZipEntry& entry) { entry.name = "archive/./data"; }, "has a name that leaves its folder");
  expect_refused([](ZipEntry& entry) { entry.name = "/etc/passwd"; }, "is no relative path");
  expect_refused([](ZipEntry& entry) { entry.name = "archive\\..\\x"; }, "is no relative path");
  expect_refused([](ZipEntry& entry) { entry.name = "archive//x"; }, "an empty part");
  expect_refused([](ZipEntry& entry) { entry.name = "archive/data/"; }, "an empty part");
  expect_refused([](ZipEntry& entry) { entry.name = ""; }, "has no name");
  expect_refused([](ZipEntry& entry) { entry.name = "other/data/0"; }, "not in the folder of the others, 'archive'");
  expect_refused([](ZipEntry& entry) { entry.name = "top"; }, "is in no folder");
  expect_refused([](ZipEntry& entry) { entry.name = std::string("archive/a\0b", 11); }, R"('archive/a\x00b')");
  expect_refused([](ZipEntry& entry) { entry.name = "archive/\xff"; },
                 R"('archive/\xff': has a name that is no plain)");
  expect_refused([](ZipEntry& entry) { entry.name = "archive/data/1"; }, "entry 'archive/data/1': is there twice");
}

TEST_F(Archive, EntriesThatLie) {
  expect_refused([](ZipEntry& entry) { entry.method = 8; }, "'archive/data/0': is compressed (deflate)");
  expect_refused([](ZipEntry& entry) { entry.method = 14; }, "is compressed (lzma)");
  // A bomb says that it grows: 1 GB out of eight bytes.
  expect_refused(
      [](ZipEntry& entry) {
        entry.method = 8;
        entry.size = 1 << 30;
        entry.stored = 8;
      },
      "is compressed (deflate)");
  expect_refused(
      [](ZipEntry& entry) {
        entry.size = 1 << 30;
        entry.stored = 8;
      },
      "is stored in 8 bytes and holds 1073741824");
  expect_refused([](ZipEntry& entry) { entry.flags = 1; }, "is encrypted");
  expect_refused([](ZipEntry& entry) { entry.size = 1 << 30; }, "has 1073741824 bytes from");
  expect_refused([](ZipEntry& entry) { entry.size = 100; }, "'archive/data/1': overlaps 'data/0'");
  expect_refused([](ZipEntry& entry) { entry.local_size = 4; }, "has 4 bytes by its own header and 8");
  expect_refused([](ZipEntry& entry) { entry.header_at = 0; }, "is named 'archive/data.pkl' by its own header");
  expect_refused([](ZipEntry& entry) { entry.header_at = 5; }, "has no header at byte 5");
  expect_refused([](ZipEntry& entry) { entry.header_at = 1 << 30; }, "begins at byte 1073741824 of");
  expect_refused([](ZipEntry& entry) { entry.local_name = "archive/data/9"; }, "is named 'archive/data/9'");
  expect_refused([](ZipEntry& entry) { entry.crc = 7; }, "entry 'data/0' is damaged: CRC-32");
}

// The wide values of a zip64 field stand for the full ones of the header.
TEST_F(Archive, Zip64Fields) {
  const auto wide = [](uint64_t id, uint64_t bytes, const std::vector<uint64_t>& values) {
    std::string extra = testing::bytes_of(id, 2) + testing::bytes_of(bytes, 2);
    for (const uint64_t value : values) extra += testing::bytes_of(value, 8);
    return extra;
  };
  const auto with = [&](const std::string& extra) {
    auto entries = torch_entries("pickle", {"12345678"});
    entries[2].size = entries[2].stored = 0xffffffff;
    entries[2].local_size = 8;
    entries[2].extra = extra;
    return zip(entries);
  };
  EXPECT_EQ(refusal(with(wide(1, 16, {8, 8}))), "");
  EXPECT_EQ(refusal(with(wide(7, 8, {1}) + wide(1, 16, {8, 8}))), "");
  expect_refused(with(wide(1, 16, {1ull << 40, 1ull << 40})), "by its own header and 1099511627776 by the directory");
  expect_refused(with(wide(1, 16, {8, 9})), "is stored in 9 bytes and holds 8");
  expect_refused(with(wide(1, 8, {8})), "zip64 field that lacks a value");
  expect_refused(with(wide(1, 99, {8, 8})), "extra field that is longer than its header");
  expect_refused(with(wide(1, 16, {UINT64_MAX, UINT64_MAX})), "by its own header and 18446744073709551615");
  expect_refused(with(""), "by its own header and 4294967295");
}

TEST_F(Archive, NotWhatTorchSaveWrites) {
  expect_refused(zip({{"archive/version", "3\n"}}), "has no entry 'data.pkl'");
  expect_refused(zip({{"archive/data.pkl", ""}}), "has no entry 'version'");
  for (const char* version : {"", "0", "11", "3x", "99999999999999999999"})
    expect_refused(zip({{"archive/data.pkl", ""}, {"archive/version", version}}), "'archive/version': says '");
  auto entries = torch_entries("pickle", {});
  entries[1].bytes = "big";
  expect_refused(zip(entries), "entry 'archive/byteorder': says 'big'");
  entries[1] = {"archive/constants.pkl", ""};
  expect_refused(zip(entries), "is a TorchScript archive");
  entries[1] = {"archive/code/__torch__/module.py", ""};
  entries[1].method = 8;
  expect_refused(zip(entries), "is a TorchScript archive");
}

}  // namespace
}  // namespace assay

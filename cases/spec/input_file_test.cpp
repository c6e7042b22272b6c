#include "cases/spec/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

class InputFiles : public ::testing::Test {
 protected:
  // What reading says after `change`, of a file that was written an hour ago.
  std::string refusal_after(const std::function<void()>& change) const {
    write_file(file_, "0123456789");
    fs::last_write_time(file_, fs::file_time_type::clock::now() - std::chrono::hours(1));
    const InputFile input(file_);
    change();
    char bytes[4] = {};
    try {
      input.read(3, reinterpret_cast<std::byte*>(bytes), 4, "tensor 'a'");
    } catch (const InputError& error) {
      EXPECT_EQ(error.where(), file_.string());
      EXPECT_EQ(error.problem().find("tensor 'a' "), 0u) << error.problem();
      return error.problem();
    }
    EXPECT_EQ(std::string(bytes, 4), "3456");
    return "";
  }
  const ScratchFolder temporary_;
  const fs::path file_ = temporary_.path() / "w";
};

TEST_F(InputFiles, BytesByPosition) {
  EXPECT_EQ(refusal_after([] {}), "");
  const InputFile input(file_);
  EXPECT_EQ(input.size(), 10u);
  std::byte byte;
  EXPECT_NO_THROW(input.read(10, &byte, 0, "x"));
  EXPECT_THROW(input.read(10, &byte, 1, "x"), InputError);
  EXPECT_THROW(input.read(UINT64_MAX, &byte, 1, "x"), InputError);
}

TEST_F(InputFiles, ChangesAreErrors) {
  EXPECT_EQ(refusal_after([&] { fs::resize_file(file_, 5); }), "tensor 'a' ends early: the file was cut short");
  EXPECT_EQ(refusal_after([&] { fs::resize_file(file_, 9); }),
            "tensor 'a' cannot be trusted: the file was resized from 10 to 9 bytes after it was opened");
  EXPECT_EQ(refusal_after([&] { std::ofstream(file_, std::ios::app) << "x"; }),
            "tensor 'a' cannot be trusted: the file was resized from 10 to 11 bytes after it was opened");
  EXPECT_EQ(refusal_after([&] { fs::remove(file_); }),
            "tensor 'a' cannot be trusted: the file was removed or replaced after it was opened");
  EXPECT_EQ(refusal_after([&] { write_file(file_, "9876543210"); }),
            "tensor 'a' cannot be trusted: the file was removed or replaced after it was opened");
  EXPECT_EQ(refusal_after([&] { std::fstream(file_, std::ios::in | std::ios::out) << "9876543210"; }),
            "tensor 'a' cannot be trusted: the file was written to after it was opened");
}

TEST_F(InputFiles, OnlyRegularFiles) {
  EXPECT_THROW(InputFile(temporary_.path()), InputError);
  EXPECT_THROW(InputFile(temporary_.path() / "absent"), InputError);
  ASSERT_EQ(mkfifo((temporary_.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(InputFile(temporary_.path() / "pipe"), InputError);  // must not wait for a writer
}

}  // namespace
}  // namespace assay

// What a driver older than the CUDA of the build leads to, with CUDA's own runtime in between.
#include <gtest/gtest.h>

#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Runs;
using testing::shell;

class OldDriver : public Runs {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ASSAY_OLD_DRIVER)) GTEST_SKIP() << "the fast path is left out of this build";
  }
  std::string beside_it(const std::string& command) const {
    return "LD_LIBRARY_PATH=" + shell_quoted(std::filesystem::path(ASSAY_OLD_DRIVER).parent_path().string()) + " " +
           command;
  }
  const std::string text = "the driver supports CUDA 12.4, this build needs 1";
};

TEST_F(OldDriver, ARunIsSkippedAndToldBothVersions) {
  expect_ends(shell(beside_it(command("run mamba --subject fast --out " + shell_quoted(out().string())))), 77,
              {text, "no_gpu", "install a newer driver"});
}

TEST_F(OldDriver, DoctorTellsBothVersions) {
  const testing::Ended ended = shell(beside_it(command("doctor")));
  EXPECT_NE(ended.text.find(text), std::string::npos) << ended.text;  // its exit code is that of everything it looks at
}

}  // namespace
}  // namespace assay

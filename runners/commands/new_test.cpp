// `assay new`: what it writes is a case as soon as `why` is filled in.
#include <gtest/gtest.h>

#include "cases/spec/select.hpp"
#include "runners/testing/runs.hpp"

namespace assay {
namespace {

using testing::Ended;
using testing::Runs;
using testing::shell;
namespace fs = std::filesystem;

TEST_F(Runs, NewWritesAValidCaseOfEachAspect) {
  const std::vector<std::string> without_format{"int4"};
  size_t written = 0;
  for (const std::string aspect : kAspects) {
    const Ended ended = shell(command("new mamba " + aspect + ".fresh"));
    const fs::path file = root() / ("cases/models/mamba/" + aspect + ".fresh.json");
    if (!fs::exists(file)) {
      expect_ends(ended, 2, {"aspect " + aspect, "no format"});
      EXPECT_NE(std::find(without_format.begin(), without_format.end(), aspect), without_format.end()) << aspect;
      continue;
    }
    ++written;
    EXPECT_EQ(ended.code, 0) << ended.text;
    EXPECT_EQ(shell(command("list")).code, 2) << "a case without a reason must not run";
    nlohmann::json document = read_json(file);
    document["why"] = "A fault that this test does not care about.";
    write_file(file, document.dump());
    expect_ends(shell(command("list")), 0, {"mamba/" + aspect + ".fresh"});
  }
  EXPECT_GE(written, 13U);
  for (const char* aspect : {"logits", "padding", "batch", "cache", "causal"}) {
    const std::string id = std::string("mamba/") + aspect + ".fresh";
    EXPECT_EQ(run("--case " + id).code, 0) << id;
    EXPECT_EQ(rows().at(id).status, Status::kPass) << id << ": " << rows().at(id).reason;
  }
}

TEST_F(Runs, NewRefusesWhatIsNoNameOrIsThere) {
  expect_ends(shell(command("new mamba cahce.x")), 2, {"unknown aspect 'cahce'", "cache"});
  expect_ends(shell(command("new mamba cache.X")), 2, {"lower case"});
  expect_ends(shell(command("new mamba cache.two")), 2, {"exists already"});
  const fs::path config = root() / "cases/models/mamba/small.config.json";
  nlohmann::json document = read_json(config);
  document["inputs"] = {{"one", {{"tokens", {17}}}}};
  write_file(config, document.dump());
  expect_ends(shell(command("new mamba beams.x")), 2, {"no input with \"beams\"", "add one"});
  expect_ends(shell(command("new mamba logits.x")), 2, {"no input of several tokens"});
  expect_ends(shell(command("new mamba2 cache.two")), 2, {"no config of mamba2"});
}

}  // namespace
}  // namespace assay

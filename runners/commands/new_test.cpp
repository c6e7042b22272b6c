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
  for (const std::string aspect : kAspects) {
    const Ended ended = shell(command("new mamba " + aspect + ".fresh"));
    const fs::path file = root() / ("cases/models/mamba/" + aspect + ".fresh.json");
    ASSERT_EQ(ended.code, 0) << ended.text;
    const std::string id = "mamba/" + aspect + ".fresh";
    expect_ends(run("--case " + id), 2, {aspect + ".fresh.json /why"});
    expect_ends(run("mamba"), 2, {aspect + ".fresh.json /why"});
    EXPECT_EQ(run("--case mamba/logits.a").code, 0) << "another case does not care";
    expect_ends(shell(command("list")), 2, {"mamba/logits.a ", id, "BROKEN", "/why"});
    nlohmann::json document = read_json(file);
    document["why"] = "A fault that this test does not care about.";
    write_file(file, document.dump());
    expect_ends(shell(command("list")), 0, {"mamba/" + aspect + ".fresh"});
  }
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

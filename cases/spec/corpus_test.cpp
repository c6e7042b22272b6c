#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "cases/spec/case.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/select.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Corpus& repository() {
  static const Corpus corpus = read_corpus(ASSAY_ROOT);
  return corpus;
}

// A corpus of one model in a folder of its own: the repository's tiny config and one case.
class SmallCorpus {
  const ScratchFolder temporary_;

 public:
  SmallCorpus() {
    fs::create_directories(folder());
    fs::copy_file(fs::path(ASSAY_ROOT) / "cases/models/mamba2/tiny.config.json", folder() / "tiny.config.json");
  }
  fs::path folder() const { return root / "cases/models/mamba2"; }
  void add(const std::string& name, const Json& document) const { write_file(folder() / name, document.dump()); }
  std::string refusal() const {
    try {
      select_cases(read_corpus(root), {"mamba*"});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }
  const fs::path root = temporary_.path();
};

Json document(const char* legs) {
  return {{"schema", "assay.case/1"},
          {"config", "tiny"},
          {"tier", "ci"},
          {"dtype", "float32"},
          {"why", "a sentence that says which fault it exposes"},
          {"legs", Json::parse(legs)}};
}

std::string refusal(const char* legs, const std::string& name = "cache.one.json") {
  SmallCorpus corpus;
  corpus.add(name, document(legs));
  return corpus.refusal();
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Corpus, TheRepositorysConfigsAndCasesRead) {
  for (const BrokenCase& broken : repository().broken) ADD_FAILURE() << broken.id << ": " << broken.problem;
  for (const ModelSpec& spec : model_specs()) {
    const std::string model(spec.name);
    EXPECT_EQ(repository().configs.count(model + "/tiny"), 1u) << model;
    EXPECT_EQ(repository().configs.count(model + "/awkward"), 1u) << model;
  }
}

TEST(Corpus, EveryFamilyIsAskedEverySortOfQuestion) {
  std::map<std::string, std::map<std::string, int>> counts;
  std::map<std::string, std::set<std::string>> configs;
  std::map<std::string, int> smoke;
  for (const Case& test_case : repository().cases) {
    ++counts[test_case.model][test_case.aspect];
    configs[test_case.model].insert(test_case.config);
    smoke[test_case.model] += test_case.tier == "smoke";
  }
  for (const ModelSpec& spec : model_specs()) {
    const std::string model(spec.name);
    int total = 0;
    for (const auto& [aspect, count] : counts[model]) total += count;
    EXPECT_GE(total, 14) << model;
    for (const char* aspect : {"logits", "generate", "padding", "batch", "cache", "causal", "mixer"})
      EXPECT_GE(counts[model][aspect], 1) << model << " " << aspect;
    EXPECT_GE(configs[model].size(), 2u) << model;
    EXPECT_GE(smoke[model], 1) << model;
  }
}

// At real widths there are few inputs and cases: what they cost buys long sums only.
bool is_wide(const ModelConfig& config) { return config.name == "real"; }

// Rows that start alike hide a subject that reads row 0's state for all.
TEST(Corpus, InputsDifferFromTheFirstTokenOn) {
  for (const auto& [id, config] : repository().configs) {
    if (is_wide(config)) continue;
    std::set<int64_t> first;
    bool has_single = false;
    for (const auto& [name, input] : config.inputs) {
      EXPECT_TRUE(first.insert(input.tokens[0]).second) << id << " input " << name;
      has_single = has_single || input.tokens.size() == 1;
    }
    EXPECT_GE(first.size(), 3u) << id;
    EXPECT_TRUE(has_single) << id;
  }
}

TEST(Corpus, EveryInputIsAskedAbout) {
  std::set<std::string> used;
  for (const Case& test_case : repository().cases)
    for (const Leg& leg : test_case.legs)
      for (const Row& row : leg.rows) used.insert(test_case.model + "/" + test_case.config + "." + row.input);
  for (const auto& [id, config] : repository().configs)
    for (const auto& [name, input] : config.inputs) EXPECT_EQ(used.count(id + "." + name), 1u) << id << "." << name;
}

// A step ignores the mask of its own column, so a leg must not step inside its padding.
TEST(Corpus, FirstCallReachesBeyondThePadding) {
  for (const Case& test_case : repository().cases) {
    for (const Leg& leg : test_case.legs) {
      for (const Row& row : leg.rows) {
        if (row.pad == 0 || leg.calls[0].kind == CallSize::Kind::kRest) continue;
        const int64_t first = leg.calls[0].kind == CallSize::Kind::kEach ? 1 : leg.calls[0].columns;
        EXPECT_GT(first, row.pad) << test_case.id << " " << leg.name;
      }
    }
  }
}

TEST(Corpus, SizesThatHideFaultsAreNotChosen) {
  for (const auto& [id, config] : repository().configs) {
    if (config.model != "mamba2" || is_wide(config)) continue;
    const Json& fields = config.fields;
    EXPECT_GT(fields.at("n_groups"), 1) << id;
    EXPECT_LT(fields.at("n_groups"), fields.at("num_heads")) << id;
    EXPECT_NE(fields.at("head_dim"), fields.at("state_size")) << id;
    const auto chunk = fields.at("chunk_size").get<int64_t>();
    std::set<int64_t> lengths;
    for (const Case& test_case : repository().cases)
      if (test_case.model + "/" + test_case.config == id && test_case.aspect == "logits")
        for (const Leg& leg : test_case.legs) lengths.insert(leg.rows[0].length);
    const auto kernel = fields.at("conv_kernel").get<int64_t>();
    for (int64_t length :
         {int64_t{1}, kernel - 1, kernel, kernel + 1, chunk - 1, chunk, chunk + 1, 2 * chunk + 3, 3 * chunk + 1})
      EXPECT_EQ(lengths.count(length), 1u) << id << " length " << length;
  }
}

TEST(Corpus, LengthsBeyondTheInputAreRefused) {
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "prompt33", "length": 34}]}])"),
               {"cache.one.json /legs/0/rows/0/length", "34", "33"});
  // The greedy continuation belongs to the input's whole sequence: 5 + 24.
  EXPECT_EQ(refusal(R"([{"name": "a", "rows": [{"input": "greedy5", "length": 29}]}])"), "");
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "greedy5", "length": 30}]}])"), {"/legs/0/rows/0/length"});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "before": {"input": "one", "length": 2}}])"),
               {"/legs/0/before/length"});
}

TEST(Corpus, UnknownNamesListTheNearest) {
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "prompt48"}]}])"), {"/legs/0/rows/0/input", "prompt33"});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "forms": {"ssx": "*"}}])"),
               {"/legs/0/forms", "ssd"});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "forms": {"ssd": "chunkd"}}])"),
               {"cache.one.json /legs/0/forms/ssd", "no form 'chunkd'", "nearest: chunked"});
  EXPECT_EQ(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "forms": {"ssd": "engine:warp"}}])"), "");
  SmallCorpus corpus;
  Json other = document(R"([{"name": "a", "rows": [{"input": "one"}]}])");
  other["config"] = "tinny";
  corpus.add("cache.one.json", other);
  expect_parts(corpus.refusal(), {"/config", "tinny", "tiny"});
}

TEST(Corpus, CallsMustFitTheColumns) {
  const char* short_calls = R"([{"name": "a", "rows": [{"input": "one"}], "cache": "dynamic", "calls": [2]}])";
  expect_parts(refusal(short_calls), {"/legs/0/calls", "2 columns"});
  const char* missing =
      R"([{"name": "a", "rows": [{"input": "prompt33", "length": 9}], "cache": "dynamic", "calls": [3, 3]}])";
  expect_parts(refusal(missing), {"/legs/0/calls", "6 of 9"});
  const char* none_left =
      R"([{"name": "a", "rows": [{"input": "prompt33", "length": 9}], "cache": "dynamic", "calls": [9, "rest"]}])";
  expect_parts(refusal(none_left), {"/legs/0/calls", "none for the last"});
  const char* padded =
      R"([{"name": "a", "rows": [{"input": "prompt33", "length": 9, "pad": 2}], "cache": "dynamic", "calls": [6, 5]}])";
  EXPECT_EQ(refusal(padded), "");
}

TEST(Corpus, RowsOfALegHaveOneWidth) {
  expect_parts(
      refusal(R"([{"name": "a", "rows": [{"input": "prompt33", "length": 9}, {"input": "other21", "length": 8}]}])"),
      {"/legs/0/rows/1", "8 columns", "9"});
}

TEST(Corpus, ChangesAreChecked) {
  const char* far =
      R"([{"name": "a", "rows": [{"input": "prompt33", "length": 9, "change": {"position": 9, "token": 6}}]}])";
  expect_parts(refusal(far, "causal.one.json"), {"/legs/0/rows/0/change/position", "9 of 9"});
  const char* same = R"([{"name": "a", "rows": [{"input": "one", "change": {"position": 0, "token": 17}}]}])";
  expect_parts(refusal(same, "causal.one.json"), {"/change/token", "already"});
  const char* outside = R"([{"name": "a", "rows": [{"input": "one", "change": {"position": 0, "token": 56}}]}])";
  expect_parts(refusal(outside, "causal.one.json"), {"/change/token", "[0, 56)"});
  expect_parts(refusal(outside, "cache.one.json"), {"/change", "causal"});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}]}])", "causal.one.json"), {"changes a token"});
}

TEST(Corpus, FreeRunningNeedsGreedyTokens) {
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "free_running": true}])"), {"/input", "greedy"});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "greedy5", "length": 4}], "free_running": true}])"),
               {"/length", "whole prompt"});
  EXPECT_EQ(refusal(R"([{"name": "a", "rows": [{"input": "greedy5"}], "free_running": true}])"), "");
}

TEST(Corpus, BeamsAreThoseOfTheInput) {
  EXPECT_EQ(refusal(R"([{"name": "a", "rows": [{"input": "beams5"}], "beams": {"width": 3, "steps": 6}}])"), "");
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one"}], "beams": {"width": 3, "steps": 6}}])"),
               {"/legs/0/rows/0/input", "no \"beams\""});
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "beams5"}], "beams": {"width": 4, "steps": 6}}])"),
               {"3 beams for 6 steps"});
  expect_parts(
      refusal(R"([{"name": "a", "rows": [{"input": "beams5", "length": 4}], "beams": {"width": 3, "steps": 6}}])"),
      {"/legs/0/rows/0/length", "whole prompt"});
}

// A run is recorded once, with one list of modules left out.
TEST(Corpus, CasesOfOneQuantisedRunLeaveTheSameModulesOut) {
  SmallCorpus corpus;
  Json first = document(R"([{"name": "a", "rows": [{"input": "one"}]}])");
  first["quantization"] = "nf4";
  Json second = first;
  second["unquantized"] = {"in_proj"};
  corpus.add("int4.first.json", first);
  corpus.add("int4.second.json", second);
  expect_parts(corpus.refusal(), {"int4.second.json", "/unquantized", "int4.first", "'one'"});
  second["quantization"] = "nf4dq";  // another run
  corpus.add("int4.second.json", second);
  EXPECT_EQ(corpus.refusal(), "");
}

TEST(Corpus, PadTokensLieInTheVocabulary) {
  expect_parts(refusal(R"([{"name": "a", "rows": [{"input": "one", "pad": 3}], "pad_token": 56}])"),
               {"/legs/0/pad_token", "[0, 56)"});
}

TEST(Corpus, FoldersAndFilesMustBelong) {
  SmallCorpus corpus;
  fs::create_directories(corpus.root / "cases/models/mamba22");
  expect_parts(corpus.refusal(), {"mamba22", "mamba2"});
  fs::remove(corpus.root / "cases/models/mamba22");
  fs::create_directories(corpus.root / "cases/models/mamba");
  fs::copy_file(corpus.folder() / "tiny.config.json", corpus.root / "cases/models/mamba/tiny.config.json");
  expect_parts(corpus.refusal(), {"/model", "folder"});
  EXPECT_THROW(read_corpus(corpus.root / "nowhere"), InputError);
}

TEST(Corpus, ABrokenFileStopsOnlyWhatSelectsIt) {
  SmallCorpus corpus;
  const Json sound = document(R"([{"name": "a", "rows": [{"input": "one"}]}])");
  Json unfinished = sound, lost = sound;
  unfinished["why"] = "";
  lost["config"] = "other";
  corpus.add("logits.sound.json", sound);
  corpus.add("cache.unfinished.json", unfinished);
  corpus.add("batch.lost.json", lost);
  write_file(corpus.folder() / "other.config.json", "{");
  write_file(corpus.folder() / "mixer.cut.json", "{\"schema\": ");
  const Corpus read = read_corpus(corpus.root);
  std::vector<std::string> broken;
  for (const BrokenCase& one : read.broken) broken.push_back(one.id);
  EXPECT_EQ(broken, (std::vector<std::string>{"mamba2/batch.lost", "mamba2/cache.unfinished", "mamba2/mixer.cut",
                                              "mamba2/other.config"}));
  const auto refusal_of = [&read](const std::string& selector) -> std::string {
    try {
      select_cases(read, {selector});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  for (const char* free : {"mamba2/logits.sound", "*/logits.*", "aspect:logits"})
    EXPECT_EQ(refusal_of(free), "") << free;
  for (const char* taking :
       {"*", "mamba2", "model:mamba2", "mamba2/cache.*", "aspect:cache", "mamba2/cache.unfinished"})
    EXPECT_NE(refusal_of(taking), "") << taking;
  expect_parts(refusal_of("aspect:batch"), {"batch.lost.json /config", "other.config.json", "truncated"});
  expect_parts(refusal_of("config:other"), {"other.config.json"});
  expect_parts(refusal_of("mamba2/cache.*"), {"cache.unfinished.json /why", "characters"});
  // Of a file that cannot be read, tier and ops are not known: it may be meant.
  expect_parts(refusal_of("tier:smoke"), {"mixer.cut.json"});
  EXPECT_NE(refusal_of("op:ssd"), "");
  EXPECT_EQ(select_all(read, {"*"}).cases.size(), 1U);
  EXPECT_EQ(select_all(read, {"*"}).broken.size(), 4U);
}

TEST(Corpus, BrokenFilesAreNamed) {
  SmallCorpus corpus;
  std::ofstream(corpus.folder() / "cache.cut.json") << "{\"schema\": \"assay.case/1\", \"legs\": [";
  expect_parts(corpus.refusal(), {"cache.cut.json", "truncated"});
}

}  // namespace
}  // namespace assay

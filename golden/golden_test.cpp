#include "golden/golden.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay::golden {
namespace {

// Written by hand; the content digest was computed outside of this program (json and hashlib of Python).
constexpr const char* kText = R"({
 "config": "tiny",
 "config_digest": "c0ffee",
 "content_digest": "36f796dcb7893bd1e2c665d7af87009818ce95fff1d9bbdf8ff85208dbf740af",
 "gap": [0.5,0.25,1],
 "input": "three",
 "kind": "f32",
 "model": "mamba2",
 "original": {
  "package": "transformers",
  "threads": 1,
  "version": "5.24.0"
 },
 "probes": [
  {
   "floor": [0,1e-06,2.5e-05],
   "name": "embed",
   "norm": [5,2.5,0.1],
   "norm_floor": [0,0,1e-07],
   "positions": 3,
   "sample": [1,3],
   "scale": 4,
   "shape": [2,2],
   "values": [
    [3,4],
    [-0.0,2.5],
    [0.1,1e-38]
   ]
  },
  {
   "floor": [0,0,0],
   "name": "logits",
   "norm": [1,2,"NaN"],
   "norm_floor": [0,0,0],
   "positions": 3,
   "scale": 2,
   "shape": [2],
   "values": [
    [1,0],
    [0,-2],
    ["NaN","-Infinity"]
   ]
  }
 ],
 "prompt": [7,8],
 "schema": "assay.golden/1",
 "states": [
  {
   "cut": 2,
   "states": [
    {
     "floor": [0.5],
     "name": "layers.0.mixer.conv_state",
     "norm": [5],
     "norm_floor": [0.25],
     "positions": 1,
     "scale": 4,
     "shape": [1,2],
     "values": [
      [3,4]
     ]
    }
   ]
  }
 ],
 "tokens": [7,8,9],
 "weight_digests": {
  "backbone.norm_f.weight": "0123456789abcdef"
 }
}
)";
const std::filesystem::path kFile = "mamba2/tiny.three.f32.json";

nlohmann::json document() { return nlohmann::json::parse(kText); }
Golden parse(std::string_view text) { return parse_golden(parse_json(text, kFile), kFile); }

// What the error of a changed document says; the digest is made to fit, so that it is the change that is judged.
std::string complaint(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json changed = document();
  change(changed);
  changed["content_digest"] = content_digest(changed);
  try {
    parse_golden(changed, kFile);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}
void expect_refused(const std::string& pointer, const std::string& words,
                    const std::function<void(nlohmann::json&)>& change) {
  const std::string text = complaint(change);
  EXPECT_NE(text.find(kFile.string()), std::string::npos) << text;
  EXPECT_NE(text.find(pointer), std::string::npos) << pointer << " is not in: " << text;
  EXPECT_NE(text.find(words), std::string::npos) << words << " is not in: " << text;
}

TEST(Golden, BeamsAndWhatWasRecordedReadBack) {
  nlohmann::json changed = document();
  changed["probes"].erase(0);
  changed["probes"][0]["sparse"] = true;
  changed["record"] = "logits";
  changed["beams"] = {{"floor", 1e-06},
                      {"scores", {-1.0, -1.25}},
                      {"sequences", {{5, 9}, {7, 4}}},
                      {"steps",
                       {{{"floor", 0}, {"log_probs", {-0.5, -0.75, -1.5}}, {"sources", {0, 0}}, {"tokens", {7, 5}}},
                        {{"floor", 0}, {"log_probs", {-2.0, -2.5, -3.0}}, {"sources", {1, 0}}, {"tokens", {9, 4}}}}}};
  changed["content_digest"] = content_digest(changed);
  const Golden golden = parse_golden(changed, kFile);
  EXPECT_TRUE(golden.is_logits_only);
  EXPECT_TRUE(golden.probes[0].is_sparse);
  ASSERT_TRUE(golden.beams);
  EXPECT_EQ(golden.beams->sequences[1], (std::vector<int64_t>{7, 4}));
  EXPECT_EQ(golden.beams->steps[1].sources, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(nlohmann::json::parse(format(golden)), changed);
  EXPECT_NE(format(golden).find("{\"floor\": 0, \"log_probs\": [-2,-2.5,-3], \"sources\": [1,0], \"tokens\": [9,4]}"),
            std::string::npos);

  changed["beams"]["sequences"][0][1] = 8;
  changed["content_digest"] = content_digest(changed);
  EXPECT_THROW(parse_golden(changed, kFile), InputError);
  expect_refused("/probes", "logits", [](nlohmann::json& other) { other["record"] = "logits"; });
}

TEST(Golden, ReadsEveryField) {
  const Golden golden = parse(kText);
  EXPECT_EQ(golden.id(), "mamba2/tiny.three.f32");
  EXPECT_EQ(golden.config_digest, "c0ffee");
  EXPECT_EQ(golden.weight_digests.at("backbone.norm_f.weight"), "0123456789abcdef");
  EXPECT_EQ(golden.original.at("version"), "5.24.0");
  EXPECT_EQ(golden.prompt, (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(golden.tokens, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(golden.gap, (std::vector<float>{0.5, 0.25, 1}));
  ASSERT_EQ(golden.probes.size(), 2u);
  const Record& embed = golden.probes[0];
  EXPECT_EQ(embed.shape, (Shape{2, 2}));
  EXPECT_EQ(embed.positions, 3);
  EXPECT_EQ(embed.sample, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(embed.columns(), 2);
  EXPECT_EQ(embed.values, (std::vector<float>{3, 4, -0.f, 2.5, 0.1f, 1e-38f}));
  EXPECT_TRUE(std::signbit(embed.values[2]));
  EXPECT_EQ(embed.norm, (std::vector<float>{5, 2.5, 0.1f}));
  EXPECT_EQ(embed.floor, (std::vector<float>{0, 1e-6f, 2.5e-5f}));
  EXPECT_EQ(embed.norm_floor, (std::vector<float>{0, 0, 1e-7f}));
  EXPECT_EQ(embed.scale, 4);
  const Record* logits = golden.probe("logits");
  ASSERT_EQ(logits, &golden.probes[1]);
  EXPECT_TRUE(logits->sample.empty());
  EXPECT_EQ(logits->columns(), 2);
  EXPECT_TRUE(std::isnan(logits->values[4]));
  EXPECT_EQ(logits->values[5], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(logits->norm[2]));
  EXPECT_EQ(golden.probe("norm_f"), nullptr);
  ASSERT_NE(golden.states_at(2), nullptr);
  EXPECT_EQ(golden.states_at(2)->states[0].values, (std::vector<float>{3, 4}));
  EXPECT_EQ(golden.states_at(3), nullptr);
}

TEST(Golden, FormatIsTheTextThatWasRead) { EXPECT_EQ(format(parse(kText)), kText); }

TEST(Golden, HandEditIsSeen) {
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[3,4],", "[3,4.5],"}, {"1e-06", "1e-05"}, {"[7,8,9]", "[7,8,1]"}, {"5.24.0", "5.25.0"}}) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    try {
      parse(text);
      ADD_FAILURE() << from << " -> " << to << " was not seen";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("edited by hand: content digest differs"), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("/content_digest"), std::string::npos) << error.what();
    }
  }
}

TEST(Golden, SchemaIsClosed) {
  EXPECT_EQ(complaint([](nlohmann::json&) {}), "accepted");
  expect_refused("/", "gap", [](auto& d) { d.erase("gap"); });
  expect_refused("/notes", "no such property", [](auto& d) { d["notes"] = "x"; });
  expect_refused("/original/host", "no such property", [](auto& d) { d["original"]["host"] = "x"; });
  expect_refused("/probes/0/floors", "no such property", [](auto& d) { d["probes"][0]["floors"] = 1; });
  expect_refused("/schema", "assay.golden/1", [](auto& d) { d["schema"] = "assay.golden/2"; });
  expect_refused("/kind", "f32", [](auto& d) { d["kind"] = "f33"; });
  expect_refused("/states/0/cut", "at least 1", [](auto& d) { d["states"][0]["cut"] = 0; });
  expect_refused("/tokens/1", "integer", [](auto& d) { d["tokens"][1] = 8.5; });
  expect_refused("/probes/1/values/0/1", "NaN", [](auto& d) { d["probes"][1]["values"][0][1] = "nan"; });
  expect_refused("/probes/0/values/0/1", "null", [](auto& d) { d["probes"][0]["values"][0][1] = nullptr; });
}

TEST(Golden, FloorsAreFiniteAndNotNegative) {
  expect_refused("/probes/0/floor/1", "at least 0", [](auto& d) { d["probes"][0]["floor"][1] = -1; });
  expect_refused("/probes/0/floor/1", "number", [](auto& d) { d["probes"][0]["floor"][1] = "Infinity"; });
  expect_refused("/probes/0/norm_floor/2", "beyond float32", [](auto& d) { d["probes"][0]["norm_floor"][2] = 1e300; });
  expect_refused("/probes/0/scale", "at least 0", [](auto& d) { d["probes"][0]["scale"] = -1; });
}

TEST(Golden, SizesAgree) {
  expect_refused("/gap", "holds 2 numbers, expected 3", [](auto& d) { d["gap"].erase(0); });
  expect_refused("/probes/0/norm", "holds 2 numbers, expected 3", [](auto& d) { d["probes"][0]["norm"].erase(0); });
  expect_refused("/probes/0/floor", "holds 4 numbers, expected 3",
                 [](auto& d) { d["probes"][0]["floor"].push_back(0); });
  expect_refused("/probes/0/values", "holds 2 rows, expected 3", [](auto& d) { d["probes"][0]["values"].erase(0); });
  expect_refused("/probes/0/values/1", "holds 1 values, expected 2",
                 [](auto& d) { d["probes"][0]["values"][1].erase(0); });
  expect_refused("/probes/1/values/0", "there is no sample", [](auto& d) { d["probes"][1]["shape"] = {3}; });
  expect_refused("/probes/0/sample/1", "not ascending", [](auto& d) { d["probes"][0]["sample"] = {3, 3}; });
  expect_refused("/probes/0/sample/1", "element 4 of a row of 4", [](auto& d) { d["probes"][0]["sample"] = {1, 4}; });
}

TEST(Golden, PartsFitTheRun) {
  expect_refused("/tokens", "start with the prompt", [](auto& d) { d["prompt"] = {7, 9}; });
  expect_refused("/tokens", "start with the prompt", [](auto& d) { d["prompt"] = {7, 8, 9, 10}; });
  expect_refused("/probes/1/name", "logits", [](auto& d) { d["probes"][1]["name"] = "norm_f"; });
  expect_refused("/probes/1/name", "stands twice", [](auto& d) { d["probes"][0]["name"] = "logits"; });
  expect_refused("/states/0/cut", "beyond the 3 tokens", [](auto& d) { d["states"][0]["cut"] = 4; });
  expect_refused("/states/1/cut", "not ascending", [](auto& d) { d["states"].push_back(d["states"][0]); });
  expect_refused("/states/1/states", "other states", [](auto& d) {
    d["states"].push_back(d["states"][0]);
    d["states"][1]["cut"] = 3;
    d["states"][1]["states"][0]["name"] = "layers.1.mixer.conv_state";
  });
  expect_refused("/probes/1/positions", "the run has 4 tokens", [](auto& d) {
    d["tokens"].push_back(1);
    d["gap"].push_back(1);
    nlohmann::json& embed = d["probes"][0];
    embed["positions"] = 4;
    embed["values"].push_back({1, 1});
    for (const char* name : {"norm", "floor", "norm_floor"}) embed[name].push_back(1);
  });
}

TEST(Golden, FileMustLieWhereItsRunSays) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "golden_test" / "mamba2";
  std::filesystem::create_directories(folder);
  const std::filesystem::path right = folder / "tiny.three.f32.json", wrong = folder / "tiny.other.f32.json";
  std::ofstream(right) << kText;
  std::ofstream(wrong) << kText;
  EXPECT_EQ(read_golden(right).input, "three");
  EXPECT_THROW(read_golden(wrong), InputError);
  std::ofstream(right) << std::string(kText).substr(0, 700);
  EXPECT_THROW(read_golden(right), InputError);
  std::filesystem::remove(right);
  EXPECT_THROW(read_golden(right), InputError);
  std::filesystem::remove_all(folder.parent_path());
  EXPECT_EQ(golden_file("/r", "mamba2", "tiny", "three", "f32"), "/r/golden/models/mamba2/tiny.three.f32.json");
}

TEST(Golden, NoPrefixOfTheTextIsAGolden) {
  const std::string text = kText;
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_THROW(parse(text.substr(0, length)), InputError) << length;
}

// Any bits of a float32 but a NaN's payload.
float random_float(std::mt19937& random) {
  while (true) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value)) return value;
  }
}

Record random_record(std::mt19937& random, std::string name, int64_t positions) {
  const auto below = [&random](uint32_t limit) { return static_cast<int64_t>(random() % limit); };
  Record record{.name = std::move(name), .positions = positions};
  for (int64_t i = below(3); i >= 0; --i) record.shape.push_back(1 + below(4));
  if (below(2))
    for (int64_t i = 0; i < element_count(record.shape); ++i)
      if (below(2) || i == 0) record.sample.push_back(i);
  for (int64_t i = 0; i < positions * record.columns(); ++i) record.values.push_back(random_float(random));
  for (int64_t i = 0; i < positions; ++i) {
    record.norm.push_back(std::abs(random_float(random)));
    record.floor.push_back(std::abs(random_float(random)));
    record.norm_floor.push_back(std::abs(random_float(random)));
  }
  record.scale = std::abs(random_float(random));
  return record;
}

TEST(Golden, RandomGoldensKeepEveryBitAndByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Golden golden{.model = "mamba", .config = "c", .input = "i", .kind = "f32", .config_digest = "d"};
    golden.original = {{"package", "a \"quoted\" name"}, {"version", "\u00e9\n"}};
    const auto length = static_cast<int64_t>(1 + random() % 9);
    for (int64_t i = 0; i < length; ++i) {
      golden.tokens.push_back(static_cast<int64_t>(random()));
      golden.gap.push_back(std::abs(random_float(random)));
    }
    golden.prompt.assign(golden.tokens.begin(), golden.tokens.begin() + 1);
    golden.probes.push_back(random_record(random, "embed", length));
    golden.probes.push_back(random_record(random, "logits", length));
    golden.states.push_back({.cut = 1, .states = {random_record(random, "layers.0.mixer.ssm_state", 3)}});
    const std::string text = format(golden);
    const Golden back = parse(text);
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(back.probes[i].values.size(), golden.probes[i].values.size());
      EXPECT_EQ(std::memcmp(back.probes[i].values.data(), golden.probes[i].values.data(),
                            golden.probes[i].values.size() * sizeof(float)),
                0);
      EXPECT_EQ(back.probes[i].sample, golden.probes[i].sample);
      EXPECT_EQ(back.probes[i].floor, golden.probes[i].floor);
    }
    EXPECT_EQ(back.tokens, golden.tokens);
    EXPECT_EQ(format(back), text);
  }
}

}  // namespace
}  // namespace assay::golden

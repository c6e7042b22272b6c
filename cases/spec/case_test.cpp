#include "cases/spec/case.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

Json document() {
  return Json::parse(R"({
    "schema": "assay.case/1", "config": "tiny", "tier": "ci", "dtype": "float32",
    "why": "a sentence that says which fault it exposes",
    "legs": [
      {"name": "whole", "rows": [{"input": "prompt33"}]},
      {"name": "split", "rows": [{"input": "prompt33", "length": 9, "pad": 2}], "cache": "dynamic", "calls": [3, "each"],
       "forms": {"ssd": "*"}, "pad_token": 3, "before": {"input": "other21", "length": 7, "session": "new"}},
      {"name": "changed", "rows": [{"input": "prompt33", "change": {"position": 5, "token": 7}}]}
    ],
    "agree": [["whole", "split"]],
    "requires": {"gpu": true, "memory_bytes": 1024},
    "original_defect": {"what": "what the original does instead", "releases": "5.24.0"},
    "bound": {"factor": 12, "reason": "a sentence that says why it is wider"}
  })");
}

Json changed(const std::string& pointer, Json value) {
  Json result = document();
  result[Json::json_pointer(pointer)] = std::move(value);
  return result;
}

std::string refusal(const Json& value, const std::string& id = "mamba2/cache.splits") {
  try {
    parse_case(value, "c.json", id);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Case, EveryFieldArrives) {
  const Case parsed = parse_case(document(), "c.json", "mamba2/cache.splits");
  EXPECT_EQ(parsed.model, "mamba2");
  EXPECT_EQ(parsed.aspect, "cache");
  EXPECT_EQ(parsed.variant, "splits");
  EXPECT_EQ(parsed.kind, "f32");
  ASSERT_EQ(parsed.legs.size(), 3u);
  const Leg& split = parsed.legs[1];
  EXPECT_EQ(split.rows[0].length, 9);
  EXPECT_EQ(split.rows[0].pad, 2);
  EXPECT_EQ(split.cache, CacheKind::kDynamic);
  ASSERT_EQ(split.calls.size(), 2u);
  EXPECT_EQ(split.calls[0].columns, 3);
  EXPECT_EQ(split.calls[1].kind, CallSize::Kind::kEach);
  EXPECT_EQ(split.forms.at("ssd"), "*");
  EXPECT_EQ(split.pad_token, 3);
  EXPECT_EQ(split.before->length, 7);
  EXPECT_FALSE(split.before->same_session);
  EXPECT_EQ(parsed.legs[2].rows[0].change->token, 7);
  EXPECT_EQ(parsed.agree[0].second, "split");
  EXPECT_TRUE(parsed.needs_gpu);
  EXPECT_EQ(parsed.needs_memory_bytes, 1024);
  EXPECT_EQ(parsed.original_defect.at("releases"), "5.24.0");
  EXPECT_EQ(parsed.bound->factor, 12);
}

TEST(Case, Defaults) {
  const Case parsed = parse_case(document(), "c.json", "mamba2/cache.splits");
  const Leg& whole = parsed.legs[0];
  EXPECT_EQ(whole.cache, CacheKind::kNone);
  ASSERT_EQ(whole.calls.size(), 1u);
  EXPECT_EQ(whole.calls[0].kind, CallSize::Kind::kRest);
  EXPECT_EQ(whole.rows[0].length, 0);
  EXPECT_FALSE(whole.before);
  EXPECT_FALSE(whole.free_running);
}

TEST(Case, BeamsArriveAndStandAlone) {
  Json plain = changed("/legs/0/beams", {{"width", 3}, {"steps", 6}});
  plain["agree"] = Json::array();
  const Case parsed = parse_case(plain, "c.json", "mamba2/beams.three");
  EXPECT_EQ(parsed.legs[0].beams, (Input::Beams{3, 6}));
  EXPECT_FALSE(parsed.legs[0].is_exhaustive());
  expect_parts(refusal(changed("/legs/1/beams", {{"width", 3}, {"steps", 6}})), {"/legs/1/calls", "beams"});
  const Json all = {{"width", "exhaustive"}, {"steps", 2}};
  expect_parts(refusal(changed("/legs/0/beams", all)), {"/legs/0", "needs a cache"});
  expect_parts(refusal(changed("/legs/0/beams", {{"width", "exhaustive"}, {"steps", 3}})), {"/beams/steps", "2 steps"});
  expect_parts(refusal(changed("/legs/0/beams", {{"width", "wide"}, {"steps", 2}})), {"/legs/0/beams/width"});
  Json cached = document();
  cached["agree"] = Json::array();
  cached["legs"][0]["cache"] = "dynamic";
  cached["legs"][0]["beams"] = all;
  EXPECT_TRUE(parse_case(cached, "c.json", "mamba2/beams.all").legs[0].is_exhaustive());
  cached["agree"] = Json::array({Json::array({"whole", "split"})});
  expect_parts(refusal(cached), {"/agree/0", "beams"});
}

TEST(Case, ALegHasAtMost1024Rows) {
  EXPECT_NO_THROW(parse_case(changed("/legs/1/rows", Json(1024, {{"input", "one"}})), "c.json", "mamba2/cache.rows"));
  expect_parts(refusal(changed("/legs/1/rows", Json(1025, {{"input", "one"}}))), {"/legs/1/rows", "at most 1024"});
}

TEST(Case, RefusesWhatContradictsItself) {
  expect_parts(refusal(changed("/legs/1/name", "whole")), {"c.json /legs/1/name", "whole"});
  expect_parts(refusal(changed("/legs/0/calls", {3, "rest"})), {"/legs/0/calls", "cache"});
  expect_parts(refusal(changed("/legs/1/calls", {"each", 3})), {"/legs/1/calls/0", "last"});
  expect_parts(refusal(changed("/legs/1/calls", {0, "rest"})), {"/legs/1/calls/0", "at least 1"});
  expect_parts(refusal(changed("/legs/1/calls", {"all"})), {"/legs/1/calls/0", "each"});
  expect_parts(refusal(changed("/legs/1/limit", 20)), {"/legs/1/limit", "static"});
  expect_parts(refusal(changed("/agree/0/1", "splits")), {"/agree/0", "splits", "split"});
  expect_parts(refusal(changed("/agree/0/1", "whole")), {"/agree/0", "itself"});
}

TEST(Case, IdTellsModelAndAspect) {
  expect_parts(refusal(document(), "mamba2/cashe.splits"), {"cashe", "cache"});
  expect_parts(refusal(document(), "mamba2/splits"), {"<aspect>.<variant>.json"});
  expect_parts(refusal(document(), "mamba2/cache."), {"<aspect>.<variant>.json"});
}

TEST(Case, DigestIgnoresLayoutAndSeesContent) {
  const std::string digest = parse_case(document(), "c.json", "mamba2/cache.splits").digest;
  EXPECT_EQ(parse_case(document(), "d.json", "mamba2/cache.splits").digest, digest);
  EXPECT_NE(parse_case(changed("/tier", "slow"), "c.json", "mamba2/cache.splits").digest, digest);
}

}  // namespace
}  // namespace assay

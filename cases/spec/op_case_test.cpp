#include "cases/spec/op_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/select.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

Json document(const char* shapes) {
  return {{"schema", "assay.op_case/1"},
          {"tier", "ci"},
          {"why", "a sentence that says which fault it exposes"},
          {"seed", 1},
          {"shapes", Json::parse(shapes)}};
}

OpCase parsed(const Json& text, const std::string& op) { return parse_op_case(text, "case.json", op, "one"); }

std::string refusal(const Json& text, const std::string& op) {
  try {
    parsed(text, op);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(OpCase, ShapesAreProductsWithTheLastValueFastest) {
  Json text = document(R"([{"T": [1, 2], "H": [3, 5]}, {"T": 7, "H": 1, "epsilon": [0.5, 0.25]}])");
  text["inputs"] = {{"residual", {true, false}}};
  const OpCase op_case = parsed(text, "rms_norm");
  EXPECT_EQ(op_case.id, "ops/rms_norm.one");
  std::vector<std::string> points;
  for (const OpPoint& point : op_case.points) points.push_back(point.text(op_spec("rms_norm")));
  EXPECT_EQ(points,
            (std::vector<std::string>{"T 1, H 3, with residual", "T 1, H 3", "T 1, H 5, with residual", "T 1, H 5",
                                      "T 2, H 3, with residual", "T 2, H 3", "T 2, H 5, with residual", "T 2, H 5",
                                      "T 7, H 1, epsilon 0.5, with residual", "T 7, H 1, epsilon 0.5",
                                      "T 7, H 1, epsilon 0.25, with residual", "T 7, H 1, epsilon 0.25"}));
}

TEST(OpCase, AttributesOfAShapeWinOverThoseOfTheCase) {
  Json text = document(R"([{"T": 1, "I": 6}, {"T": 1, "I": 6, "groups": 3}])");
  text["attributes"] = {{"groups", 2}, {"epsilon", 0.125}};
  const OpCase op_case = parsed(text, "gated_rms_norm");
  ASSERT_EQ(op_case.points.size(), 2u);
  EXPECT_EQ(op_case.points[0].attributes, (std::map<std::string, double>{{"groups", 2}, {"epsilon", 0.125}}));
  EXPECT_EQ(op_case.points[1].attributes, (std::map<std::string, double>{{"groups", 3}, {"epsilon", 0.125}}));
}

TEST(OpCase, AnOptionalInputThatIsNotNamedIsLeftOut) {
  const OpPoint point = parsed(document(R"([{"B": 1, "L": 2, "C": 3, "K": 4}])"), "causal_conv1d").points.at(0);
  const OpSpec& spec = op_spec("causal_conv1d");
  EXPECT_TRUE(point.has_input(*spec.input("x")));
  EXPECT_FALSE(point.has_input(*spec.input("bias")));
  EXPECT_EQ(point.shape_of(*spec.input("initial_state")), (Shape{1, 3, 4}));
}

TEST(OpCase, WrongFilesAreRefusedByPlace) {
  const char* right = R"([{"T": 1, "H": 3}])";
  Json text = document(right);
  text["shape"] = 1;
  expect_parts(refusal(text, "rms_norm"), {"/shape", "no such property"});
  text = document(right);
  text.erase("why");
  expect_parts(refusal(text, "rms_norm"), {"why", "missing"});
  text = document(right);
  text["inputs"] = {{"residual", true}};
  expect_parts(refusal(text, "rms_norm"), {"/inputs/residual", "array"});
  text["inputs"] = {{"resdual", {true}}};
  expect_parts(refusal(text, "rms_norm"), {"/shapes/0", "resdual", "residual"});
  text = document(right);
  text["attributes"] = {{"eps", 0.5}};
  expect_parts(refusal(text, "rms_norm"), {"eps", "epsilon"});
  text = document(right);
  text["ranges"] = {{"x", {1, 0}}};
  expect_parts(refusal(text, "rms_norm"), {"/ranges/x", "empty"});
  text["ranges"] = {{"z", {0, 1}}};
  expect_parts(refusal(text, "rms_norm"), {"/ranges/z"});
  text = document(right);
  text["forms"] = "chunked";
  expect_parts(refusal(text, "rms_norm"), {"/forms", "[\"chunked\"]"});
  text["forms"] = {"chunkd"};
  expect_parts(refusal(text, "ssd"), {"/forms", "no form 'chunkd'", "nearest: chunked"});
  text = document(right);
  text["sample"] = {"W"};
  expect_parts(refusal(text, "rms_norm"), {"/sample", "no size 'W'"});
  expect_parts(refusal(document(right), "rms_norms"), {"rms_norms", "rms_norm"});
}

TEST(OpCase, WrongShapesAreRefusedByPlace) {
  expect_parts(refusal(document(R"([{"T": 1, "H": 3}, {"T": 1}])"), "rms_norm"), {"/shapes/1", "size H is missing"});
  expect_parts(refusal(document(R"([{"T": 1, "H": 3, "W": 1}])"), "rms_norm"), {"/shapes/0/W", "epsilon"});
  expect_parts(refusal(document(R"([{"T": 0, "H": 3}])"), "rms_norm"), {"/shapes/0", "size T is 0"});
  expect_parts(refusal(document(R"([{"T": [1, 1.5], "H": 3}])"), "rms_norm"), {"/shapes/0/T", "whole number"});
  expect_parts(refusal(document(R"([{"T": [1, "2"], "H": 3}])"), "rms_norm"), {"/shapes/0/T", "\"2\""});
  expect_parts(refusal(document(R"([{"T": [], "H": 3}])"), "rms_norm"), {"/shapes/0/T", "empty"});
  expect_parts(refusal(document(R"([{"B": 1, "L": 1, "Nh": 6, "P": 1, "G": 4, "N": 1}])"), "ssd"),
               {"G 4 does not divide Nh 6"});
  expect_parts(refusal(document(R"([{"T": 1, "I": 6, "groups": [3, 4]}])"), "gated_rms_norm"),
               {"groups 4 does not divide I 6"});
}

TEST(OpCase, EveryOpHasASmokeCaseAndStepsWhereItHasAState) {
  for (const OpSpec& spec : op_specs()) {
    bool has_smoke = false, has_step = false;
    for (const OpCase& op_case : read_op_cases(ASSAY_ROOT)) {
      if (op_case.op != spec.name) continue;
      has_smoke = has_smoke || op_case.tier == "smoke";
      for (const OpPoint& point : op_case.points)
        has_step = has_step || (spec.input("initial_state") && point.sizes.at("L") == 1 &&
                                point.has_input(*spec.input("initial_state")));
    }
    EXPECT_TRUE(has_smoke) << spec.name;
    EXPECT_EQ(has_step, spec.input("initial_state") != nullptr) << spec.name;
  }
}

TEST(OpCase, IsSelectedByIdGlobAndOp) {
  const Corpus corpus = read_corpus(ASSAY_ROOT);
  const auto ids = [&corpus](const char* selector) {
    std::set<std::string> result;
    for (const Case* test_case : select_cases(corpus, {selector})) result.insert(test_case->id);
    return result;
  };
  EXPECT_EQ(ids("ops/ssd.edges"), std::set<std::string>{"ops/ssd.edges"});
  EXPECT_EQ(ids("ops/*").size(), corpus.op_cases.size());
  EXPECT_EQ(ids("model:ops"), ids("ops"));
  EXPECT_TRUE(ids("op:ssd").contains("ops/ssd.edges"));
  EXPECT_TRUE(ids("op:ssd").contains("mamba2/cache.splits"));
  EXPECT_FALSE(ids("op:ssd").contains("ops/linear.edges"));
  EXPECT_FALSE(ids("config:*").contains("ops/ssd.edges"));
}

}  // namespace
}  // namespace assay

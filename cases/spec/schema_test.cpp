#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

Json valid_case() {
  return Json::parse(R"({
    "schema": "assay.case/1", "config": "tiny", "tier": "ci", "dtype": "float32",
    "why": "a sentence that says which fault it exposes",
    "legs": [{"name": "whole", "rows": [{"input": "prompt33", "length": 9, "pad": 2}]}]
  })");
}

std::string refusal(const Json& document, const std::string& schema = "case.schema.json") {
  try {
    check_schema(document, schema, "a.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json changed(const std::string& pointer, Json value) {
  Json document = valid_case();
  document[Json::json_pointer(pointer)] = std::move(value);
  return document;
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(Schema, AcceptsAValidCase) { EXPECT_EQ(refusal(valid_case()), ""); }

TEST(Schema, UnexpectedPropertyIsNamedWithItsPointerAndTheNearest) {
  expect_parts(refusal(changed("/legs/0/rows/0/lenght", 3)),
               {"a.json /legs/0/rows/0/lenght", "no such property", "did you mean \"length\"", "\"pad\""});
  expect_parts(refusal(changed("/teir", "ci")), {"a.json /teir", "did you mean \"tier\""});
}

TEST(Schema, MissingPropertyIsNamed) {
  Json document = valid_case();
  document.erase("why");
  expect_parts(refusal(document), {"a.json /:", "\"why\" is missing"});
  document = valid_case();
  document["legs"][0].erase("rows");
  expect_parts(refusal(document), {"a.json /legs/0", "\"rows\" is missing"});
}

TEST(Schema, EnumsTypesAndLimitsSayWhatWasExpected) {
  expect_parts(refusal(changed("/tier", "fast")), {"a.json /tier", "\"fast\"", "\"smoke\", \"ci\", \"slow\""});
  expect_parts(refusal(changed("/legs/0/rows/0/length", "9")), {"/legs/0/rows/0/length", "expected integer", "string"});
  expect_parts(refusal(changed("/legs/0/rows/0/length", 2.5)), {"/legs/0/rows/0/length", "expected integer"});
  expect_parts(refusal(changed("/legs/0/rows/0/pad", -3)), {"/legs/0/rows/0/pad", "at least 0", "-3"});
  expect_parts(refusal(changed("/schema", "assay.case/2")), {"/schema", "assay.case/1", "assay.case/2"});
  expect_parts(refusal(changed("/legs", Json::array())), {"/legs", "at least 1"});
  expect_parts(refusal(changed("/why", "short")), {"/why", "at least 20"});
  expect_parts(refusal(Json::array()), {"a.json /", "expected object, got array"});
}

TEST(Schema, UnknownSchemaListsThoseBuiltIn) {
  expect_parts(refusal(valid_case(), "cases.schema.json"), {"cases.schema.json", "case.schema.json"});
}

// std::regex would go down the stack a level for every character.
TEST(Schema, TextsThatAreTooLongToBeMatched) {
  const std::string longest(4096, 'a'), longer(4097, 'a'), huge(1'000'000, 'a');
  EXPECT_EQ(refusal(changed("/unquantized", {longest})), "");
  expect_parts(refusal(changed("/unquantized", {longer})), {"a.json /unquantized/0", "4097 bytes, at most 4096"});
  expect_parts(refusal(changed("/unquantized", {huge})), {"a.json /unquantized/0", "1000000 bytes"});
  expect_parts(refusal(changed("/" + huge, 1)), {"a.json /: ", "1000000 bytes"});
  EXPECT_EQ(refusal(changed("/why", huge)), "");  // no pattern, no limit
}

}  // namespace
}  // namespace assay

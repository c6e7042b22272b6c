#include "cases/spec/model_config.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kRoot = ASSAY_ROOT;

Json tiny(const std::string& model = "mamba2") {
  return read_json(kRoot / "cases" / "models" / model / "tiny.config.json");
}

std::string refusal(const Json& document) {
  try {
    parse_config(document, "folder/tiny.config.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

Json changed(const std::string& pointer, Json value, const std::string& model = "mamba2") {
  Json document = tiny(model);
  document[Json::json_pointer(pointer)] = std::move(value);
  return document;
}

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

TEST(ModelConfig, ReadsTheRepositorysTinyConfig) {
  const ModelConfig config = parse_config(tiny(), "folder/tiny.config.json");
  EXPECT_EQ(config.id(), "mamba2/tiny");
  EXPECT_EQ(config.weights.kind, WeightsRecipe::Kind::kSynthetic);
  EXPECT_EQ(config.input("greedy5").tokens.size(), 5u);
  EXPECT_EQ(config.input("greedy5").greedy, 24);
  EXPECT_EQ(config.digest.size(), 64u);
}

// Computed by an independent Philox whose own known answers (Random123) hold.
TEST(ModelConfig, DrawnTokensAreKnown) {
  const ModelConfig config = parse_config(tiny(), "folder/tiny.config.json");
  const std::vector<int64_t>& tokens = config.input("prompt33").tokens;
  ASSERT_EQ(tokens.size(), 33u);
  EXPECT_EQ(std::vector<int64_t>(tokens.begin(), tokens.begin() + 10),
            (std::vector<int64_t>{2, 30, 12, 21, 45, 3, 0, 26, 31, 13}));
  EXPECT_EQ(config.input("greedy5").tokens, (std::vector<int64_t>{54, 51, 47, 47, 14}));
}

TEST(ModelConfig, AnInputSaysWhatItsGoldenHolds) {
  const ModelConfig config = parse_config(tiny(), "folder/tiny.config.json");
  EXPECT_TRUE(config.input("long8").is_logits_only);
  EXPECT_EQ(config.input("long8").length(), 200);
  EXPECT_EQ(config.cuts_of(config.input("long8")), std::vector<int64_t>{200});
  EXPECT_FALSE(config.input("other21").is_logits_only);
  EXPECT_EQ(config.cuts_of(config.input("other21")), (std::vector<int64_t>{1, 3, 4, 7, 8, 9, 21}));
  EXPECT_EQ(config.input("beams5").beams, (Input::Beams{3, 6}));
  EXPECT_FALSE(config.input("other21").beams);

  expect_parts(refusal(changed("/inputs/beams5/beams/width", 1)), {"/inputs/beams5/beams/width"});
  expect_parts(refusal(changed("/inputs/beams5/beams/width", 56)), {"/inputs/beams5/beams/width", "vocabulary"});
  expect_parts(refusal(changed("/inputs/beams5/greedy", 4)), {"/inputs/beams5/beams", "greedy"});
  expect_parts(refusal(changed("/inputs/beams5/record", "some")), {"/inputs/beams5/record"});
}

TEST(ModelConfig, DigestFollowsWhatTheWeightsDependOn) {
  const std::string before = parse_config(tiny(), "a/tiny.config.json").digest;
  EXPECT_EQ(parse_config(tiny(), "b/other.config.json").digest, before);
  EXPECT_EQ(parse_config(changed("/why", "another sentence of enough letters"), "x.config.json").digest, before);
  EXPECT_EQ(parse_config(changed("/weights/fit", {{"gap", 0.1}}), "x.config.json").digest, before);
  EXPECT_NE(parse_config(changed("/weights/seed", 987), "x.config.json").digest, before);
  EXPECT_NE(parse_config(changed("/config/layer_norm_epsilon", 1e-4), "x.config.json").digest, before);
}

TEST(ModelConfig, TokensOutsideTheVocabularyAreNamed) {
  expect_parts(refusal(changed("/inputs/one/tokens", {3, 56})),
               {"tiny.config.json /inputs/one/tokens/1", "56", "[0, 56)"});
  expect_parts(refusal(changed("/inputs/one/tokens", {3, -1})), {"/inputs/one/tokens/1", "at least 0", "-1"});
}

TEST(ModelConfig, InputsNeedTokensOrSeedAndLength) {
  expect_parts(refusal(changed("/inputs/one/tokens", Json::array())), {"/inputs/one/tokens", "at least 1"});
  expect_parts(refusal(changed("/inputs/one", Json::object())), {"/inputs/one", "tokens"});
  expect_parts(refusal(changed("/inputs/one", {{"seed", 1}})), {"/inputs/one", "length"});
  expect_parts(refusal(changed("/inputs/one/seed", 1)), {"/inputs/one", "either"});
  expect_parts(refusal(changed("/inputs/prompt33/length", -49)), {"/inputs/prompt33/length", "at least 1", "-49"});
  expect_parts(refusal(changed("/inputs/prompt33/length", 0)), {"/inputs/prompt33/length"});
}

TEST(ModelConfig, WeightsBelongToTheirKind) {
  Json document = tiny();
  document["weights"] = {{"kind", "checkpoint"}};
  expect_parts(refusal(document), {"/weights", "\"directory\" is missing"});
  document["weights"] = {{"kind", "checkpoint"}, {"directory", "weights"}, {"seed", 1}};
  expect_parts(refusal(document), {"/weights", "seed"});
  document["weights"] = {{"kind", "synthetic"}};
  expect_parts(refusal(document), {"/weights", "\"seed\" is missing"});
  document["weights"] = {{"kind", "checkpoint"}, {"directory", "weights"}};
  EXPECT_EQ(parse_config(document, "folder/tiny.config.json").weights.directory, "folder/weights");
}

TEST(ModelConfig, UnknownModelListsTheNearest) {
  expect_parts(refusal(changed("/model", "mamba3")), {"/model", "mamba3", "mamba2"});
}

TEST(ModelConfig, LyingFieldsAreRefusedByName) {
  for (const char* model : {"mamba", "mamba2"}) {
    expect_parts(refusal(changed("/config/hidden_size", -24, model)), {"hidden_size"});
    expect_parts(refusal(changed("/config/num_hidden_layers", 0, model)), {"num_hidden_layers"});
    expect_parts(refusal(changed("/config/layer_norm_epsilon", {{"__float__", "NaN"}}, model)), {"layer_norm_epsilon"});
    expect_parts(refusal(changed("/config/vocab_size", "56", model)), {"vocab_size"});
  }
  // 6 heads of 8 are not expand * hidden_size = 50.
  EXPECT_NE(refusal(changed("/config/hidden_size", 25)), "");
}

TEST(ModelConfig, StateCutsAscend) {
  expect_parts(refusal(changed("/state_cuts", {1, 4, 4})), {"/state_cuts/2", "ascend"});
  expect_parts(refusal(changed("/state_cuts", {0, 4})), {"/state_cuts/0", "at least 1"});
}

TEST(ModelConfig, UnknownInputListsTheNearest) {
  const ModelConfig config = parse_config(tiny(), "folder/tiny.config.json");
  try {
    config.input("prompt34");
    FAIL();
  } catch (const InputError& error) {
    expect_parts(error.what(), {"mamba2/tiny", "prompt34", "prompt33"});
  }
}

TEST(ModelSpec, EveryLineOfTheTableIsThereOnce) {
  EXPECT_EQ(model_spec("mamba").name, "mamba");
  EXPECT_EQ(model_spec("mamba2").original_class, "Mamba2ForCausalLM");
  for (size_t i = 1; i < model_specs().size(); ++i) EXPECT_LT(model_specs()[i - 1].name, model_specs()[i].name);
  EXPECT_THROW(model_spec("mamba9"), InputError);
}

}  // namespace
}  // namespace assay

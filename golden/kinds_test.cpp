#include "golden/kinds.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "cases/spec/error.hpp"
#include "golden/life.hpp"
#include "golden/review.hpp"

namespace assay::golden {
namespace {

using Json = nlohmann::json;
const std::filesystem::path kFile = "mamba2/tiny.three.json";

// A run of three tokens with two logits and three weights, of a kind's members alone.
Json document(const std::string& kind) {
  const Json logits = {{"name", "logits"},
                       {"positions", 3},
                       {"shape", {2}},
                       {"values", Json::array({{1, 2}, {3, 4}, {5, 6}})},
                       {"norm", {2.25, 5, 7.75}},
                       {"floor", {0, 1e-06, 0}},
                       {"norm_floor", {0, 0, 0}},
                       {"scale", 6}};
  const Json state = {{"name", "layers.0.mixer.conv_state"},
                      {"positions", 1},
                      {"shape", {1}},
                      {"values", Json::array({{1}})},
                      {"norm", {1}},
                      {"floor", {0}},
                      {"norm_floor", {0}},
                      {"scale", 1}};
  Json made = {{"config", "tiny"},
               {"config_digest", "c0ffee"},
               {"gap", {0.5, 0.25, 1}},
               {"input", "three"},
               {"kind", kind},
               {"model", "mamba2"},
               {"original", {{"package", "transformers"}, {"version", "5.24.0"}}},
               {"probes", {logits}},
               {"prompt", {7, 8, 9}},
               {"schema", "assay.golden/1"},
               {"states", {{{"cut", 3}, {"states", {state}}}}},
               {"tokens", {7, 8, 9}},
               {"weight_digests", {{"a", "00"}, {"b", "11"}, {"c", "22"}}}};
  const auto error = [](const char* compute, const Json& marked) {
    return Json{{"compute", compute}, {"logits", {0.25, 0.75, 0}}, {"marked", marked}};
  };
  if (kind == "f16") made["errors"] = {error("float16", {0, 2})};
  if (kind == "bf16") made["errors"] = {error("bfloat16", {0, 2})};
  if (kind == "f16" || kind == "bf16") made["float32_weights"] = {"a", "c"};
  if (kind.starts_with("nf4")) made["errors"] = {error("float32", Json::array()), error("bfloat16", {1})};
  if (kind == "nf4")
    made["quantization"] = {{"unquantized", {"dt_proj"}},
                            {"weights", {{"b", {{"codes", {"0123abcd", "ffffffff"}}, {"absmax", {0.1, 2.5}}}}}}};
  if (kind == "nf4dq")
    made["quantization"] = {{"unquantized", Json::array()},
                            {"weights",
                             {{"b",
                               {{"codes", {"0123abcd", "ffffffff"}},
                                {"absmax_codes", {0, 255}},
                                {"nested_absmax", {1.5}},
                                {"offset", -0.1}}}}}};
  return made;
}

Golden parse(Json made) {
  made["content_digest"] = content_digest(made);
  return parse_golden(made, kFile);
}

void expect_refused(const std::string& kind, const std::string& pointer, const std::string& words,
                    const std::function<void(Json&)>& change) {
  Json changed = document(kind);
  change(changed);
  try {
    parse(changed);
    ADD_FAILURE() << kind << ": accepted, though " << pointer << " is wrong";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(" " + pointer), std::string::npos) << pointer << " is not in: " << text;
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in: " << text;
  }
}

TEST(Kinds, EveryKindReadsBackAsItsText) {
  for (const Kind& kind : kinds()) {
    Json made = document(std::string(kind.name));
    made["content_digest"] = content_digest(made);
    const Golden golden = parse_golden(made, kFile);
    EXPECT_EQ(Json::parse(format(golden)), made) << kind.name;
    EXPECT_EQ(format(parse_golden(Json::parse(format(golden)), kFile)), format(golden)) << kind.name;
  }
}

TEST(Kinds, HalfPrecisionIsRead) {
  const Golden golden = parse(document("bf16"));
  ASSERT_EQ(golden.errors.size(), 1u);
  EXPECT_EQ(golden.errors[0].compute, "bfloat16");
  EXPECT_EQ(golden.errors[0].logits, (std::vector<float>{0.25f, 0.75f, 0}));
  EXPECT_EQ(golden.errors[0].marked, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(golden.float32_weights, (std::vector<std::string>{"a", "c"}));
  EXPECT_FALSE(golden.quantization);
  EXPECT_NE(format(golden).find("\n \"errors\": [\n  {\n   \"compute\": \"bfloat16\",\n   \"logits\": [0.25,0.75,0],\n"
                                "   \"marked\": [0,2]\n  }\n ],\n \"float32_weights\": [\"a\",\"c\"],\n"),
            std::string::npos)
      << format(golden);
}

TEST(Kinds, QuantizedWeightsAreRead) {
  const Golden once = parse(document("nf4")), twice = parse(document("nf4dq"));
  ASSERT_TRUE(once.quantization && twice.quantization);
  EXPECT_EQ(once.quantization->unquantized, std::vector<std::string>{"dt_proj"});
  EXPECT_EQ(once.quantization->weights.at("b").absmax, (std::vector<float>{0.1f, 2.5f}));
  EXPECT_EQ(once.errors[1].compute, "bfloat16");
  const QuantizedWeight& weight = twice.quantization->weights.at("b");
  EXPECT_EQ(weight.codes, (std::vector<std::string>{"0123abcd", "ffffffff"}));
  EXPECT_EQ(weight.absmax_codes, (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(weight.nested_absmax, std::vector<float>{1.5f});
  EXPECT_EQ(weight.offset, -0.1f);
  EXPECT_NE(format(twice).find("\"absmax_codes\": [0,255],\n    \"codes\": [\"0123abcd\",\"ffffffff\"],\n"
                               "    \"nested_absmax\": [1.5],\n    \"offset\": -0.1\n"),
            std::string::npos)
      << format(twice);
}

TEST(Kinds, MembersBelongToTheirKinds) {
  for (const char* kind : {"f16", "bf16", "nf4", "nf4dq"})
    expect_refused(kind, "/errors", "has this member", [](Json& d) { d.erase("errors"); });
  for (const char* kind : {"f16", "bf16"}) {
    expect_refused(kind, "/float32_weights", "has this member", [](Json& d) { d.erase("float32_weights"); });
    expect_refused(kind, "/quantization", "lacks this member",
                   [](Json& d) { d["quantization"] = document("nf4")["quantization"]; });
  }
  for (const char* kind : {"nf4", "nf4dq"}) {
    expect_refused(kind, "/quantization", "has this member", [](Json& d) { d.erase("quantization"); });
    expect_refused(kind, "/float32_weights", "lacks this member", [](Json& d) { d["float32_weights"] = {"a"}; });
  }
  expect_refused("f32", "/errors", "lacks this member", [](Json& d) { d["errors"] = document("f16")["errors"]; });
  expect_refused("f32", "/float32_weights", "lacks this member", [](Json& d) { d["float32_weights"] = {"a"}; });
  expect_refused("f32", "/quantization", "lacks this member",
                 [](Json& d) { d["quantization"] = document("nf4")["quantization"]; });
}

TEST(Kinds, ErrorsFitTheKindAndTheRun) {
  expect_refused("f16", "/errors", "kind f16 has float16", [](Json& d) { d["errors"] = document("bf16")["errors"]; });
  expect_refused("nf4", "/errors", "kind nf4 has float32, bfloat16", [](Json& d) { d["errors"].erase(1); });
  expect_refused("nf4dq", "/errors", "is of bfloat16, float32",
                 [](Json& d) { std::swap(d["errors"][0], d["errors"][1]); });
  expect_refused("bf16", "/errors/0/compute", "bfloat16", [](Json& d) { d["errors"][0]["compute"] = "bf16"; });
  expect_refused("bf16", "/errors/0/logits", "holds 2 numbers, expected 3",
                 [](Json& d) { d["errors"][0]["logits"].erase(0); });
  expect_refused("bf16", "/errors/0/logits/1", "at least 0", [](Json& d) { d["errors"][0]["logits"][1] = -0.5; });
  expect_refused("bf16", "/errors/0/logits/1", "number", [](Json& d) { d["errors"][0]["logits"][1] = "NaN"; });
  expect_refused("bf16", "/errors/0/logits/1", "beyond float32", [](Json& d) { d["errors"][0]["logits"][1] = 1e60; });
  expect_refused("bf16", "/errors/0/marked/1", "position 3 of a run of 3", [](Json& d) {
    d["errors"][0]["marked"] = {0, 3};
  });
  expect_refused("bf16", "/errors/0/marked/1", "not ascending", [](Json& d) { d["errors"][0]["marked"] = {2, 0}; });
  expect_refused("bf16", "/errors/0/marked/1", "not ascending", [](Json& d) { d["errors"][0]["marked"] = {2, 2}; });
  expect_refused("bf16", "/errors/0/marked/0", "at least 0", [](Json& d) { d["errors"][0]["marked"] = {-1}; });
  expect_refused("bf16", "/errors/0/mark", "no such property", [](Json& d) { d["errors"][0]["mark"] = 1; });
}

TEST(Kinds, WeightsAreThoseOfTheRun) {
  expect_refused("f16", "/float32_weights/1", "none of the weights", [](Json& d) {
    d["float32_weights"] = {"a", "d"};
  });
  expect_refused("f16", "/float32_weights/1", "not in order", [](Json& d) { d["float32_weights"] = {"c", "a"}; });
  expect_refused("f16", "/float32_weights/1", "not in order", [](Json& d) { d["float32_weights"] = {"a", "a"}; });
  expect_refused("nf4", "/quantization/weights", "none of the weights", [](Json& d) {
    Json& weights = d["quantization"]["weights"];
    weights["d"] = weights["b"];
  });
}

TEST(Kinds, PartsOfAQuantizedWeightFitEachOther) {
  const auto weight = [](Json& d) -> Json& { return d["quantization"]["weights"]["b"]; };
  const std::string place = "/quantization/weights/b";
  expect_refused("nf4", place, "\"absmax\" is missing", [&](Json& d) { weight(d).erase("absmax"); });
  expect_refused("nf4", place + "/absmax", "holds 1 numbers, expected 2",
                 [&](Json& d) { weight(d)["absmax"] = {0.5}; });
  expect_refused("nf4", place + "/absmax/0", "at least 0", [&](Json& d) { weight(d)["absmax"][0] = -1; });
  expect_refused("nf4", place, "\"offset\" belongs to nf4dq", [&](Json& d) { weight(d)["offset"] = 0.5; });
  expect_refused("nf4", place, "\"absmax_codes\" belongs to nf4dq", [&](Json& d) {
    weight(d)["absmax_codes"] = {1, 2};
  });
  expect_refused("nf4", place + "/codes/0", "text matching", [&](Json& d) { weight(d)["codes"][0] = "0123ABCD"; });
  expect_refused("nf4", place + "/codes", "at least 1", [&](Json& d) { weight(d)["codes"] = Json::array(); });
  expect_refused("nf4dq", place, "\"absmax\" belongs to nf4", [&](Json& d) { weight(d)["absmax"] = {1, 2}; });
  for (const char* member : {"absmax_codes", "nested_absmax", "offset"})
    expect_refused("nf4dq", place, "is missing", [&](Json& d) { weight(d).erase(member); });
  expect_refused("nf4dq", place + "/absmax_codes", "holds 3 numbers, expected 2", [&](Json& d) {
    weight(d)["absmax_codes"] = {1, 2, 3};
  });
  expect_refused("nf4dq", place + "/absmax_codes/1", "255", [&](Json& d) { weight(d)["absmax_codes"][1] = 256; });
  expect_refused("nf4dq", place + "/nested_absmax", "holds 2 numbers, expected 1", [&](Json& d) {
    weight(d)["nested_absmax"] = {1, 2};
  });
  expect_refused("nf4dq", place + "/scale", "no such property", [&](Json& d) { weight(d)["scale"] = 1; });
}

TEST(Kinds, OtherModulesLeftUnquantizedMakeItStale) {
  const Golden golden = parse(document("nf4"));
  ModelConfig config{.model = "mamba2", .name = "tiny", .digest = "c0ffee"};
  config.inputs["three"] = {"three", {7, 8, 9}, 0};
  config.state_cuts = {3};
  EXPECT_EQ(stale_reason(golden, config, {"dt_proj"}), "");
  EXPECT_EQ(stale_reason(golden, config, {}), "recorded with other modules left unquantised");
  EXPECT_EQ(stale_reason(golden, config, {"dt_proj", "x_proj"}), "recorded with other modules left unquantised");
}

TEST(Kinds, ReviewTellsErrorsFromOtherWeights) {
  const Golden half = parse(document("bf16")), quantized = parse(document("nf4dq"));
  EXPECT_EQ(classify(half, half).kind, Class::kSame);
  EXPECT_EQ(classify(quantized, quantized).kind, Class::kSame);
  Golden other = half;
  other.errors[0].logits[1] = 0.5f;
  other.errors[0].marked = {0};
  EXPECT_EQ(classify(half, other).kind, Class::kNoise);
  EXPECT_EQ(classify(half, other).note, "errors in bfloat16 differ; marked positions in bfloat16 differ");
  other = half;
  other.float32_weights = {"a"};
  EXPECT_EQ(classify(half, other).kind, Class::kDrift);
  for (const auto& change : std::vector<std::function<void(QuantizedWeight&)>>{
           [](QuantizedWeight& w) { w.codes[1] = "00000000"; }, [](QuantizedWeight& w) { w.absmax_codes[0] = 1; },
           [](QuantizedWeight& w) { w.nested_absmax[0] = 2; }, [](QuantizedWeight& w) { w.offset = 0; }}) {
    other = quantized;
    change(other.quantization->weights.at("b"));
    EXPECT_EQ(classify(quantized, other).kind, Class::kDrift);
  }
  other = quantized;
  other.quantization->weights.clear();
  EXPECT_EQ(classify(quantized, other).note, "quantised weights differ");
}

// What the recorder wrote of the run above.
struct Recorded {
  class Tensors : public WeightSource {
   public:
    std::map<std::string, HostTensor> held;
    std::vector<std::string> names() const override { return {}; }
    bool has(const std::string& name) const override { return held.contains(name); }
    HostTensor read(const std::string& name) const override { return held.at(name); }
  };
  Golden golden;
  Tensors tensors;
  Json run, input, manifest;

  explicit Recorded(const std::string& kind) : golden(parse(document(kind))) {
    Json made = document(kind);
    for (const char* member : {"float32_weights", "quantization"})
      if (made.contains(member)) run[member] = made[member];
    for (Json error : made["errors"]) {
      error.erase("logits");
      input["errors"].push_back(error);
    }
    const std::string exported(64, 'a');
    for (const char* name : {"a", "b", "c"}) {
      run["weights"][name] = exported;
      manifest["weights"][name] = {{"shape", {5, 17}}, {"sha256", exported}};
    }
    for (const char* compute : {"float32", "float16", "bfloat16"})
      tensors.held[std::string("error/") + compute + "/logits"] =
          HostTensor({3, 2}, std::vector<float>{1, 2.5f, 3, 3.8760f, 5, 6});
    golden.errors.clear();
    golden.float32_weights.clear();
    golden.quantization.reset();
  }
  void compose() { compose_kind(tensors, run, input, manifest, golden); }
};

TEST(ComposeKind, TakesErrorsFromTheSampledLogitsRoundedUp) {
  Recorded recorded("bf16");
  recorded.run["float32_weights"] = {"c", "a"};
  recorded.compose();
  EXPECT_EQ(recorded.golden.errors[0].logits, (std::vector<float>{0.5f, 0.13f, 0}));
  EXPECT_EQ(recorded.golden.errors[0].marked, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(recorded.golden.float32_weights, (std::vector<std::string>{"a", "c"}));
  recorded.golden.probes[0].sample = {0};
  recorded.golden.probes[0].values = {1, 3, 5.25f};
  recorded.compose();
  EXPECT_EQ(recorded.golden.errors[0].logits, (std::vector<float>{0, 0, 0.25f}));
}

TEST(ComposeKind, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& kind, const std::function<void(Recorded&)>& change) {
    Recorded recorded(kind);
    EXPECT_NO_THROW(recorded.compose()) << kind;
    change(recorded);
    EXPECT_THROW(recorded.compose(), HarnessError) << kind;
  };
  refused("f16", [](Recorded& r) { r.tensors.held.erase("error/float16/logits"); });
  refused("f16", [](Recorded& r) { r.tensors.held["error/float16/logits"] = HostTensor(DType::kF32, {3, 3}); });
  refused("f16", [](Recorded& r) {
    r.tensors.held["error/float16/logits"].values<float>()[4] = std::numeric_limits<float>::infinity();
  });
  refused("f16", [](Recorded& r) { r.run.erase("float32_weights"); });
  refused("bf16", [](Recorded& r) { r.input["errors"][0]["compute"] = "float16"; });
  refused("nf4", [](Recorded& r) { r.run.erase("quantization"); });
  refused("nf4", [](Recorded& r) { r.input.erase("errors"); });
  // 86 elements make two blocks of 64, 129 three.
  refused("nf4", [](Recorded& r) { r.manifest["weights"]["b"]["shape"] = {129}; });
  refused("nf4dq", [](Recorded& r) { r.run["quantization"]["weights"]["b"]["codes"] = "none"; });
}

TEST(ComposeDigests, OnlyWhatTheKindChangesMayDiffer) {
  for (const auto& [kind, name, is_allowed] : std::vector<std::tuple<std::string, std::string, bool>>{
           {"f32", "a", false}, {"bf16", "a", false}, {"bf16", "b", true}, {"nf4", "a", false}, {"nf4", "b", true}}) {
    Recorded recorded(kind);
    recorded.run["weights"][name] = std::string(64, 'd');
    if (is_allowed)
      EXPECT_EQ(compose_digests(kind, recorded.run, recorded.manifest).at(name), std::string(16, 'd'));
    else
      EXPECT_THROW(compose_digests(kind, recorded.run, recorded.manifest), HarnessError) << kind << " " << name;
  }
}

}  // namespace
}  // namespace assay::golden

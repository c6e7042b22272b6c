#include "runners/check_weights.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "runners/capability.hpp"
#include "runners/execute.hpp"
#include "runners/testing/fixture.hpp"

namespace assay {
namespace {

using golden::Finding;

const std::string kInProj = "backbone.layers.0.mixer.in_proj.weight";  // [48, 12]: 9 blocks
const std::string kNorm = "backbone.norm_f.weight";

// Nothing but weights.
struct HeldModel : Model {
  std::map<std::string, HostTensor> weights;
  std::map<std::string, std::vector<NamedTensor>> parts;

  std::unique_ptr<Session> start(const SessionOptions&) override { return nullptr; }
  HostTensor weight(const std::string& name) const override { return weights.at(name); }
  std::vector<NamedTensor> quantized(const std::string& name) const override {
    return parts.contains(name) ? parts.at(name) : std::vector<NamedTensor>{};
  }
  HostTensor& part(size_t at) { return parts.at(kInProj)[at].value; }
};

// To 16 bit by cutting off: what counts here is that golden and model say the same.
HostTensor cut(HostTensor tensor) {
  for (float& value : tensor.values<float>())
    value = std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0xffff0000U);
  return tensor;
}

std::string digest(const HostTensor& tensor) { return sha256(tensor.bytes()).substr(0, 16); }

class Weights : public ::testing::Test {
 protected:
  Weights() {
    golden.model = "mamba";
    golden.config = "small";
    golden.input = "a";
    for (const std::string& name : source->names()) hold(name, source->read(name));
  }

  void hold(const std::string& name, const HostTensor& value) {
    model.weights[name] = value;
    golden.weight_digests[name] = digest(value);
  }
  void round() {
    golden.kind = "bf16";
    golden.float32_weights = {kNorm};
    for (const std::string& name : source->names())
      if (name != kNorm) hold(name, cut(source->read(name)));
  }
  // in_proj alone, with codes 0x10, 0x11, ... and scales 1 to 9; of what the parts mean nothing is asked here.
  void quantise(bool is_double) {
    golden.kind = is_double ? "nf4dq" : "nf4";
    HostTensor codes(DType::kU8, {288}), nested({1}, std::vector<float>{2}), offset({1}, std::vector<float>{0.5F});
    HostTensor absmax(is_double ? DType::kU8 : DType::kF32, {9});
    for (size_t i = 0; i < 288; ++i) codes.values<uint8_t>()[i] = static_cast<uint8_t>(16 + i);
    golden::QuantizedWeight weight;
    for (size_t block = 0; block < 9; ++block) {
      weight.codes.push_back(sha256(codes.bytes().subspan(32 * block, 32)).substr(0, 8));
      if (is_double) {
        absmax.values<uint8_t>()[block] = static_cast<uint8_t>(block + 1);
        weight.absmax_codes.push_back(static_cast<int64_t>(block + 1));
      } else {
        absmax.values<float>()[block] = static_cast<float>(block + 1);
        weight.absmax.push_back(static_cast<float>(block + 1));
      }
    }
    model.parts[kInProj] = {{"codes", codes}, {"absmax", absmax}};
    if (is_double) {
      weight.nested_absmax = {2};
      weight.offset = 0.5F;
      model.parts[kInProj].push_back({"nested_absmax", nested});
      model.parts[kInProj].push_back({"offset", offset});
    }
    golden.quantization.emplace().weights[kInProj] = weight;
    hold(kInProj, cut(source->read(kInProj)));
  }

  void expect_finding(const std::string& probe, const std::string& what, std::initializer_list<const char*> parts,
                      const std::vector<int64_t>& index = {}) const {
    const std::optional<Finding> found = check_weights(model, config, golden);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->probe, "weights." + probe);
    EXPECT_EQ(found->what, what);
    EXPECT_EQ(found->index, index);
    for (const char* part : parts) EXPECT_NE(found->detail.find(part), std::string::npos) << found->detail;
  }

  ModelConfig config = testing::small_config();
  std::shared_ptr<const WeightSource> source = open_weights(config);
  golden::Golden golden;
  HeldModel model;
};

TEST_F(Weights, AnHonestModelHasNoFinding) {
  round();
  EXPECT_FALSE(check_weights(model, config, golden));
  for (const bool is_double : {false, true}) {
    quantise(is_double);
    EXPECT_FALSE(check_weights(model, config, golden));
  }
}

TEST_F(Weights, RoundedOrNotAgainstTheGoldenShows) {
  round();
  model.weights[kInProj] = source->read(kInProj);
  expect_finding(kInProj, "dtype", {"as it is stored", "rounds"});
  round();
  model.weights[kNorm] = cut(source->read(kNorm));
  expect_finding(kNorm, "dtype", {"keeps"});
  round();
  model.weights[kInProj].values<float>()[7] = 3;
  expect_finding(kInProj, "digest", {"[48, 12]"});
  model.weights[kInProj] = HostTensor(DType::kBF16, {48, 12});
  expect_finding(kInProj, "digest", {"bfloat16"});
}

TEST_F(Weights, TheGoldensListOfQuantisedWeightsHolds) {
  quantise(false);
  const std::vector<NamedTensor> parts = model.parts[kInProj];
  model.parts.clear();
  expect_finding(kInProj, "dtype", {"not quantised"});
  model.parts = {{kInProj, parts}, {"backbone.embeddings.weight", parts}};
  expect_finding("backbone.embeddings.weight", "dtype", {"leaves it"});
}

TEST_F(Weights, ADifferentPartIsNamedWithItsBlock) {
  quantise(false);
  for (size_t i = 32 * 5; i < 32 * 6; ++i) {  // the halves of each byte swapped in block 5
    uint8_t& byte = model.part(0).values<uint8_t>()[i];
    byte = static_cast<uint8_t>(byte << 4 | byte >> 4);
  }
  expect_finding(kInProj, "codes", {"block 5", "1 of 9"}, {5});
  quantise(false);
  model.part(1).values<float>()[8] = std::nextafter(9.0F, 10.0F);
  expect_finding(kInProj, "absmax", {"block 8", "9.000001"}, {8});
  model.part(1) = HostTensor(DType::kF16, {9});
  expect_finding(kInProj, "absmax", {"float16"});
  model.parts[kInProj].pop_back();
  expect_finding(kInProj, "absmax", {"missing"});

  quantise(true);
  model.part(1).values<uint8_t>()[0] = 0;
  expect_finding(kInProj, "absmax", {"block 0"}, {0});
  model.part(2).values<float>()[0] = 3;
  expect_finding(kInProj, "nested_absmax", {"is 3, expected 2"}, {0});
  model.part(3).values<float>()[0] = 0;
  expect_finding(kInProj, "offset", {"is 0, expected 0.5"}, {0});
  model.part(0) = HostTensor(DType::kU8, {287});
  model.part(1) = HostTensor(DType::kU8, {8});
  model.part(3).values<float>()[0] = 0.5F;
  model.part(2).values<float>()[0] = 2;
  expect_finding(kInProj, "absmax", {"8 blocks", "9"});
}

TEST_F(Weights, Float32GoldensAskNothingAndOthersForEveryWeight) {
  golden.kind = "f32";
  model.weights.clear();
  EXPECT_FALSE(check_weights(model, config, golden));
  golden.kind = "f16";
  golden.weight_digests.erase(kNorm);
  for (const std::string& name : source->names()) model.weights[name] = source->read(name);
  EXPECT_THROW(check_weights(model, config, golden), InputError);
}

TEST_F(Weights, TheModelIsLoadedAsTheGoldenWasRecorded) {
  quantise(true);
  Case test_case = testing::small_case(R"([{"name": "whole", "rows": [{"input": "a"}]}])");
  test_case.quantization = "nf4dq";
  Capabilities capabilities;
  capabilities.compute_dtypes = {DType::kF32, DType::kBF16};
  LoadOptions options = load_options(test_case, capabilities, golden);
  EXPECT_EQ(options.quantization, "nf4dq");
  EXPECT_EQ(options.quantized, std::vector<std::string>{kInProj});
  EXPECT_EQ(options.weights, DType::kF32);
  round();
  golden.quantization.reset();
  test_case.quantization = "";
  test_case.dtype = "bfloat16";
  options = load_options(test_case, capabilities, golden);
  EXPECT_EQ(options.weights, DType::kBF16);
  EXPECT_EQ(options.compute, DType::kBF16);
  EXPECT_TRUE(options.quantized.empty());
  test_case.dtype = "float16";
  EXPECT_EQ(load_options(test_case, capabilities, golden).compute, DType::kF32);
}

TEST(Capability, AQuantisedCaseIsSkippedWhereItCannotRun) {
  Case test_case = testing::small_case(R"([{"name": "whole", "rows": [{"input": "a"}]}])");
  test_case.quantization = "nf4";
  Capabilities capabilities = testing::tiny_subject().capabilities();
  try {
    check_capabilities(test_case, capabilities);
    ADD_FAILURE() << "was not skipped";
  } catch (const NoVerdict& end) {
    EXPECT_EQ(end.status, Status::kSkip);
    EXPECT_EQ(end.skip, SkipReason::kNoCapability);
    EXPECT_NE(std::string(end.what()).find("nf4"), std::string::npos);
  }
  capabilities.can_quantize_nf4 = true;
  EXPECT_NO_THROW(check_capabilities(test_case, capabilities));
}

// The tiny subject behind a source whose weights are cut to 16 bit, all of them or all but one.
class CutSubject final : public Subject {
 public:
  explicit CutSubject(std::string kept)
      : kept_(std::move(kept)), capabilities_(testing::tiny_subject().capabilities()) {
    capabilities_.weight_dtypes.push_back(DType::kBF16);
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions&) override {
    return testing::tiny_subject().load(config, std::make_shared<CutSource>(std::move(source), kept_), {});
  }

 private:
  struct CutSource final : WeightSource {
    CutSource(std::shared_ptr<const WeightSource> from, std::string but) : source(std::move(from)), kept(but) {}
    std::vector<std::string> names() const override { return source->names(); }
    bool has(const std::string& name) const override { return source->has(name); }
    HostTensor read(const std::string& name) const override {
      return name == kept ? source->read(name) : cut(source->read(name));
    }
    std::shared_ptr<const WeightSource> source;
    std::string kept;
  };
  std::string kept_;
  Capabilities capabilities_;
};

TEST_F(Weights, EveryCaseOnAModelWithAWrongWeightFails) {
  CutSubject honest(""), faulty(kNorm);
  round();
  hold(kNorm, cut(source->read(kNorm)));
  golden::Golden recorded = testing::recorded(honest, config, "a");
  recorded.kind = "bf16";
  recorded.weight_digests = golden.weight_digests;
  GoldenStore goldens("nowhere");
  goldens.put(recorded);
  Case test_case = testing::small_case(R"([{"name": "whole", "rows": [{"input": "a"}]}])");
  test_case.dtype = "bfloat16";
  test_case.kind = "bf16";

  Execution right(honest, goldens), wrong(faulty, goldens);
  EXPECT_EQ(right.run(test_case, config).status, Status::kPass) << right.run(test_case, config).reason;
  for (int repeat = 0; repeat < 2; ++repeat) {  // the model of the second case is the first one's
    const Verdict verdict = wrong.run(test_case, config);
    EXPECT_EQ(verdict.status, Status::kFail);
    ASSERT_TRUE(verdict.first);
    EXPECT_EQ(verdict.first->probe, "weights." + kNorm);
    EXPECT_NE(verdict.reason.find("as it is stored"), std::string::npos) << verdict.reason;
  }
}

}  // namespace
}  // namespace assay

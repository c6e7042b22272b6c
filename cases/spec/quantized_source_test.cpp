// Files as bitsandbytes saves them, read back, and those that it would not have written.
#include "cases/spec/quantized_source.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "cases/spec/error.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/scratch_folder.hpp"

namespace assay {
namespace {

using Json = nlohmann::json;
using Tensors = std::map<std::string, HostTensor>;

const std::string kName = "layers.0.in_proj.weight";
const std::string kState = kName + ".quant_state.bitsandbytes__nf4";

HostTensor bytes(const Shape& shape, const std::vector<uint8_t>& values) {
  HostTensor tensor(DType::kU8, shape);
  std::copy(values.begin(), values.end(), tensor.values<uint8_t>().begin());
  return tensor;
}

HostTensor text(const std::string& value) {
  return bytes({static_cast<int64_t>(value.size())}, {value.begin(), value.end()});
}

HostTensor levels(std::span<const float> values) {
  return HostTensor({static_cast<int64_t>(values.size())}, std::vector<float>(values.begin(), values.end()));
}

Json state(bool is_double) {
  Json json = {{"quant_type", "nf4"}, {"blocksize", 64}, {"dtype", "float32"}, {"shape", {3, 23}}};
  if (is_double) json.update({{"nested_blocksize", 256}, {"nested_dtype", "float32"}, {"nested_offset", 0.25}});
  return json;
}

// [3, 23] = 69 elements in 35 bytes and two blocks: codes 15 0 15 0 ..., the last one 8 and half a byte left over.
Tensors saved(bool is_double) {
  std::vector<uint8_t> codes(35, 0xf0);
  codes[34] = 0x87;
  Tensors tensors = {{kName, bytes({35, 1}, codes)},
                     {kName + ".quant_map", levels(nf4_levels())},
                     {kState, text(state(is_double).dump())},
                     {"layers.0.norm.weight", HostTensor({2}, std::vector<float>{1.5F, -2})}};
  if (is_double) {
    tensors[kName + ".absmax"] = bytes({2}, {255, 0});
    tensors[kName + ".nested_absmax"] = HostTensor({1}, std::vector<float>{0.5F});
    tensors[kName + ".nested_quant_map"] = levels(nf4_scale_levels());
  } else {
    tensors[kName + ".absmax"] = HostTensor({2}, std::vector<float>{0.75F, 3});
  }
  return tensors;
}

class QuantizedFiles : public ::testing::Test {
 protected:
  std::shared_ptr<const WeightSource> open(const Tensors& tensors) const {
    const std::filesystem::path file = folder_.path() / "model.safetensors";
    std::vector<NamedTensor> written;
    for (const auto& [name, value] : tensors) written.push_back({name, value});
    write_safetensors(file, written, {});
    return quantized_source(open_safetensors(file));
  }
  void expect_refused(bool is_double, const std::function<void(Tensors&)>& change,
                      std::initializer_list<const char*> parts) const {
    Tensors tensors = saved(is_double);
    change(tensors);
    try {
      open(tensors);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      for (const char* part : parts) EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
  void expect_state_refused(bool is_double, const std::function<void(Json&)>& change,
                            std::initializer_list<const char*> parts) const {
    expect_refused(
        is_double,
        [&](Tensors& tensors) {
          Json json = state(is_double);
          change(json);
          tensors[kState] = text(json.dump());
        },
        parts);
  }
  const ScratchFolder folder_;
};

TEST_F(QuantizedFiles, AreReadUnderTheirOwnNamesAndShapes) {
  const auto source = open(saved(false));
  EXPECT_EQ(source->names(), (std::vector<std::string>{kName, "layers.0.norm.weight"}));
  EXPECT_FALSE(source->has(kName + ".absmax"));
  EXPECT_EQ(source->header(kName).shape, (Shape{3, 23}));
  EXPECT_EQ(source->header(kName).dtype, DType::kF32);
  const HostTensor weight = source->read(kName);
  EXPECT_EQ(weight.at(0), 0.75);                  // level 15 = 1, times the scale of block 0
  EXPECT_EQ(weight.at(63), -0.75);                // level 0 = -1
  EXPECT_EQ(weight.at(64), 3);                    // block 1
  EXPECT_EQ(weight.at(68), 0.23874089121818542);  // level 8
  EXPECT_EQ(source->read_elements(kName, 63, 2).at(1), 3);
  EXPECT_EQ(source->nf4(kName)->absmax.at(1), 3);
  EXPECT_FALSE(source->nf4("layers.0.norm.weight"));
  EXPECT_EQ(source->read("layers.0.norm.weight").at(0), 1.5);
}

TEST_F(QuantizedFiles, ScalesMayBeQuantisedToo) {
  const auto source = open(saved(true));
  const HostTensor weight = source->read(kName);
  EXPECT_EQ(weight.at(0), 0.75);  // level 255 of the scales is 1: 1 * 0.5 + 0.25
  EXPECT_FLOAT_EQ(static_cast<float>(weight.at(64)), -0.99296874F * 0.5F + 0.25F);
  EXPECT_EQ(source->nf4(kName)->offset.at(0), 0.25);
}

// The original dequantises to the dtype that the weight had.
TEST_F(QuantizedFiles, ValuesAreRoundedToTheDtypeTheyHad) {
  const auto last = [&](const char* dtype) {
    Tensors tensors = saved(false);
    Json json = state(false);
    json["dtype"] = dtype;
    tensors[kState] = text(json.dump());
    return open(tensors)->read(kName).at(68);
  };
  EXPECT_EQ(last("float32"), 0.23874089121818542);
  EXPECT_EQ(last("float16"), 0.23876953125);  // 1956 / 8192
  EXPECT_EQ(last("bfloat16"), 0.23828125);    // 244 / 1024
}

TEST_F(QuantizedFiles, FilesWithoutAnyAreHandedBack) {
  const auto file = folder_.path() / "plain.safetensors";
  write_safetensors(file, {{"a", HostTensor({1}, std::vector<float>{1})}}, {});
  const auto source = open_safetensors(file);
  EXPECT_EQ(quantized_source(source), source);
}

TEST_F(QuantizedFiles, EveryPartMustBeThere) {
  for (const char* part : {".absmax", ".quant_map", ".quant_state.bitsandbytes__nf4"})
    expect_refused(false, [&](Tensors& t) { t.erase(kName + part); }, {"in_proj.weight", part, "missing"});
  for (const char* part : {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"})
    expect_refused(true, [&](Tensors& t) { t.erase(kName + part); }, {"in_proj.weight", part, "missing"});
  expect_refused(false, [](Tensors& t) { t.erase(kName); }, {"in_proj.weight", "missing"});
  expect_refused(false, [](Tensors& t) { t[kName + ".nested_absmax"] = HostTensor({1}, std::vector<float>{1}); },
                 {"nested_blocksize", "missing"});
}

TEST_F(QuantizedFiles, PartsMustFitTheShape) {
  expect_refused(false,
                 [](Tensors& t) {
                   t[kName] = bytes({36, 1}, std::vector<uint8_t>(36));
                 },
                 {"[36, 1]", "[35, 1]"});
  expect_refused(false, [](Tensors& t) { t[kName] = HostTensor(DType::kF32, {35, 1}); }, {"float32", "uint8"});
  expect_refused(false, [](Tensors& t) { t[kName + ".absmax"] = HostTensor({3}, std::vector<float>(3)); },
                 {".absmax", "[3]", "[2]"});
  expect_refused(false, [](Tensors& t) { t[kName + ".absmax"] = bytes({2}, {1, 2}); }, {".absmax", "uint8", "float32"});
  expect_refused(true, [](Tensors& t) { t[kName + ".nested_absmax"] = HostTensor({2}, std::vector<float>(2)); },
                 {".nested_absmax", "[2]", "[1]"});
}

TEST_F(QuantizedFiles, LevelsMustBeNf4s) {
  expect_refused(false, [](Tensors& t) { t[kName + ".quant_map"].values<float>()[3] = -0.4F; }, {".quant_map", "-0.4"});
  expect_refused(true, [](Tensors& t) { t[kName + ".nested_quant_map"].values<float>()[255] = 2; },
                 {".nested_quant_map", "255"});
  expect_refused(false, [](Tensors& t) { t[kName + ".quant_map"] = HostTensor({15}, std::vector<float>(15)); },
                 {"[15]", "[16]"});
}

TEST_F(QuantizedFiles, TheStateMustNotLie) {
  expect_state_refused(false, [](Json& j) { j["shape"] = {3, 24}; }, {"[35, 1]", "[36, 1]"});
  expect_state_refused(false, [](Json& j) { j["shape"] = {3, -23}; }, {"/shape"});
  expect_state_refused(false, [](Json& j) { j["shape"] = "big"; }, {"/shape"});
  expect_state_refused(false, [](Json& j) { j["shape"] = {int64_t{1} << 40, int64_t{1} << 40}; }, {});
  expect_state_refused(false, [](Json& j) { j["blocksize"] = 128; }, {"/blocksize", "128", "64"});
  expect_state_refused(false, [](Json& j) { j["quant_type"] = "fp4"; }, {"/quant_type", "fp4"});
  expect_state_refused(false, [](Json& j) { j["dtype"] = "int8"; }, {"/dtype", "int8"});
  expect_state_refused(false, [](Json& j) { j["more"] = 1; }, {"/more"});
  expect_state_refused(false, [](Json& j) { j.erase("dtype"); }, {"/dtype", "missing"});
  expect_state_refused(true, [](Json& j) { j["nested_offset"] = "0.25"; }, {"/nested_offset"});
  expect_state_refused(true, [](Json& j) { j["nested_offset"] = 1e300; }, {"/nested_offset"});
  expect_state_refused(true, [](Json& j) { j["nested_blocksize"] = 64; }, {"/nested_blocksize"});
  expect_state_refused(true, [](Json& j) { j.erase("nested_offset"); }, {"/nested_offset", "missing"});
  expect_refused(false, [](Tensors& t) { t[kState] = text("{\"quant_type\": "); }, {"quant_state"});
  expect_refused(false, [](Tensors& t) { t[kState] = text("[]"); }, {"quant_state", "object"});
  expect_refused(false, [](Tensors& t) { t[kState] = HostTensor(DType::kF32, {8}); }, {"quant_state", "JSON"});
  expect_refused(false, [](Tensors& t) { t[kState] = bytes({5000}, std::vector<uint8_t>(5000)); }, {"[5000]"});
  expect_refused(false, [](Tensors& t) { t[kName + ".quant_state.bitsandbytes__fp4"] = text("{}"); },
                 {"bitsandbytes__fp4"});
}

}  // namespace
}  // namespace assay

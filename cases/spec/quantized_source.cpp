#include "cases/spec/quantized_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kState = ".quant_state.bitsandbytes__";
constexpr const char* kTensors[] = {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"};
constexpr int64_t kMostStateBytes = 4096;

// "x.weight" of "x.weight.absmax"; empty if the name is not that of a part.
std::string owner(const std::string& name) {
  if (const size_t at = name.rfind(kState); at != std::string::npos) return name.substr(0, at);
  for (const std::string_view part : kTensors)
    if (name.ends_with(part)) return name.substr(0, name.size() - part.size());
  return "";
}

class QuantizedSource final : public WeightSource {
 public:
  QuantizedSource(std::shared_ptr<const WeightSource> source, const std::map<std::string, std::set<std::string>>& parts)
      : source_(std::move(source)) {
    std::set<std::string> inner;
    for (const auto& [name, names] : parts) {
      weights_.emplace(name, describe(name, names));
      inner.insert(names.begin(), names.end());
    }
    for (const std::string& name : source_->names())
      if (!inner.contains(name)) names_.push_back(name);
  }

  std::vector<std::string> names() const override { return names_; }
  bool has(const std::string& name) const override {
    return weights_.contains(name) || std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  TensorHeader header(const std::string& name) const override {
    const auto found = weights_.find(name);
    return found == weights_.end() ? source_->header(name) : TensorHeader{name, DType::kF32, found->second.shape};
  }
  HostTensor read(const std::string& name) const override {
    const std::optional<Nf4Weight> weight = nf4(name);
    return weight ? dequantized(*weight, weights_.at(name).shape) : source_->read(name);
  }
  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override {
    return weights_.contains(name) ? WeightSource::read_elements(name, begin, count)
                                   : source_->read_elements(name, begin, count);
  }
  std::string where(const std::string& name) const override { return source_->where(name); }
  std::string place() const override { return source_->place(); }

  std::optional<Nf4Weight> nf4(const std::string& name) const override {
    const auto found = weights_.find(name);
    if (found == weights_.end()) return std::nullopt;
    const State& state = found->second;
    Nf4Weight weight;
    const HostTensor column = source_->read(name);
    weight.codes = HostTensor(DType::kU8, {column.count()});
    std::copy(column.bytes().begin(), column.bytes().end(), weight.codes.bytes().begin());
    weight.absmax = source_->read(name + ".absmax");
    if (state.is_double) {
      weight.nested_absmax = source_->read(name + ".nested_absmax");
      weight.offset = HostTensor({1}, std::vector<float>{state.offset});
    }
    weight.dtype = state.dtype;
    return weight;
  }

 private:
  struct State {
    Shape shape;
    DType dtype = DType::kF32;
    bool is_double = false;
    float offset = 0;
  };

  void expect(const std::string& name, DType dtype, const Shape& shape) const {
    const TensorHeader header = source_->header(name);
    if (header.dtype != dtype || header.shape != shape)
      throw InputError(source_->where(name), fmt::format("is {} {}, expected {} {}", dtype_name(header.dtype),
                                                         to_string(header.shape), dtype_name(dtype), to_string(shape)));
  }

  void expect_levels(const std::string& name, std::span<const float> levels) const {
    expect(name, DType::kF32, {static_cast<int64_t>(levels.size())});
    const HostTensor map = source_->read(name);
    for (size_t i = 0; i < levels.size(); ++i)
      if (map.values<float>()[i] != levels[i])
        throw InputError(source_->where(name), fmt::format("has {} at {}, where NF4's own level is {}",
                                                           map.values<float>()[i], i, levels[i]));
  }

  Json read_state(const std::string& name) const {
    const TensorHeader header = source_->header(name);
    if (header.dtype != DType::kU8 || header.shape.size() != 1 || element_count(header.shape) > kMostStateBytes)
      throw InputError(source_->where(name), fmt::format("is {} {}, expected a few bytes of JSON",
                                                         dtype_name(header.dtype), to_string(header.shape)));
    const HostTensor bytes = source_->read(name);
    const std::string text(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size());
    return parse_json(text, source_->where(name));
  }

  // The state's JSON, closed: every field that is there is one of these, and means what it says here.
  State parse_state(const Json& json, bool is_double, const std::string& where) const {
    const auto refuse = [&](const std::string& field, const std::string& problem) -> InputError {
      return InputError(where + " /" + field, problem);
    };
    if (!json.is_object()) throw InputError(where, "is not a JSON object");
    std::set<std::string> wanted = {"quant_type", "blocksize", "dtype", "shape"};
    if (is_double) wanted.insert({"nested_blocksize", "nested_dtype", "nested_offset"});
    for (const std::string& field : wanted)
      if (!json.contains(field)) throw refuse(field, "is missing");
    for (const auto& [field, value] : json.items())
      if (!wanted.contains(field)) throw refuse(field, "is not a field of this state");
    const auto expect = [&](const char* field, const Json& value) {
      if (json.at(field) != value) throw refuse(field, "is " + json.at(field).dump() + ", expected " + value.dump());
    };
    expect("quant_type", "nf4");
    expect("blocksize", kNf4Block);
    State state;
    state.is_double = is_double;
    const Json &dtype = json.at("dtype"), &shape = json.at("shape");
    if (dtype != "float32" && dtype != "float16" && dtype != "bfloat16")
      throw refuse("dtype", "is " + dtype.dump() + ", expected float32, float16 or bfloat16");
    state.dtype = dtype_from_name(dtype.get<std::string>());
    if (!shape.is_array() || shape.empty() || shape.size() > 8) throw refuse("shape", "is not a list of sizes");
    for (const Json& size : shape) {
      if (!size.is_number_integer() || size < 1 || size > INT64_MAX) throw refuse("shape", "is not a list of sizes");
      state.shape.push_back(size.get<int64_t>());
    }
    if (!is_double) return state;
    expect("nested_blocksize", kNf4NestedBlock);
    expect("nested_dtype", "float32");
    const Json& offset = json.at("nested_offset");
    if (!offset.is_number() || !std::isfinite(offset.get<float>())) throw refuse("nested_offset", "is not a number");
    state.offset = offset.get<float>();
    return state;
  }

  State describe(const std::string& name, const std::set<std::string>& parts) const {
    const auto require = [&](const std::string& part) {
      if (!source_->has(part)) throw InputError(source_->where(name), "is quantised, and '" + part + "' is missing");
    };
    require(name);
    for (const std::string& part : parts)
      if (part.rfind(kState) != std::string::npos && !part.ends_with("__nf4"))
        throw UnsupportedError(source_->where(part), "only nf4 is read, not this type", "quantise the weights to nf4");
    const std::string state_name = name + std::string(kState) + "nf4";
    require(state_name);
    const bool is_double = parts.contains(name + ".nested_absmax") || parts.contains(name + ".nested_quant_map");
    const State state = parse_state(read_state(state_name), is_double, source_->where(state_name));

    const int64_t n = element_count(state.shape), scales = n / kNf4Block + (n % kNf4Block > 0);
    for (const char* part : {".absmax", ".quant_map"}) require(name + part);
    expect(name, DType::kU8, {n / 2 + n % 2, 1});
    expect(name + ".absmax", is_double ? DType::kU8 : DType::kF32, {scales});
    expect_levels(name + ".quant_map", nf4_levels());
    if (!is_double) return state;
    for (const char* part : {".nested_absmax", ".nested_quant_map"}) require(name + part);
    expect(name + ".nested_absmax", DType::kF32, {scales / kNf4NestedBlock + (scales % kNf4NestedBlock > 0)});
    expect_levels(name + ".nested_quant_map", nf4_scale_levels());
    return state;
  }

  std::shared_ptr<const WeightSource> source_;
  std::map<std::string, State> weights_;
  std::vector<std::string> names_;
};

}  // namespace

std::shared_ptr<const WeightSource> quantized_source(std::shared_ptr<const WeightSource> source) {
  std::map<std::string, std::set<std::string>> parts;
  for (const std::string& name : source->names())
    if (const std::string weight = owner(name); !weight.empty()) parts[weight].insert(name);
  if (parts.empty()) return source;
  return std::make_shared<QuantizedSource>(std::move(source), parts);
}

}  // namespace assay

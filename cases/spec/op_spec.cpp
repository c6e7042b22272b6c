#include "cases/spec/op_spec.hpp"

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

OpTensor given(const std::string& name, std::vector<std::string> sizes, DType dtype = DType::kF32) {
  return {.name = name, .sizes = std::move(sizes), .dtype = dtype};
}

OpTensor optional(const std::string& name, std::vector<std::string> sizes, DType dtype = DType::kF32) {
  return {.name = name, .sizes = std::move(sizes), .dtype = dtype, .is_optional = true};
}

std::vector<OpSpec> make_specs() {
  std::vector<OpSpec> specs;
  specs.push_back({.name = "embedding",
                   .sizes = {"B", "L", "V", "H"},
                   .inputs = {given("ids", {"B", "L"}, DType::kI64), given("weight", {"V", "H"})},
                   .outputs = {given("y", {"B", "L", "H"})}});
  specs.push_back({.name = "linear",
                   .sizes = {"T", "in", "out"},
                   .inputs = {given("x", {"T", "in"}), given("weight", {"out", "in"}), optional("bias", {"out"})},
                   .outputs = {given("y", {"T", "out"})}});
  specs.push_back({.name = "rms_norm",
                   .sizes = {"T", "H"},
                   .inputs = {given("x", {"T", "H"}), given("weight", {"H"}), optional("residual", {"T", "H"})},
                   .outputs = {given("y", {"T", "H"}), {.name = "sum", .sizes = {"T", "H"}, .with = "residual"}},
                   .attributes = {"epsilon"}});
  specs.push_back({.name = "gated_rms_norm",
                   .sizes = {"T", "I"},
                   .inputs = {given("x", {"T", "I"}), given("z", {"T", "I"}), given("weight", {"I"})},
                   .outputs = {given("y", {"T", "I"})},
                   .attributes = {"groups", "epsilon"},
                   .divides = {{"groups", "I"}}});
  specs.push_back({.name = "causal_conv1d",
                   .sizes = {"B", "L", "C", "K"},
                   .inputs = {given("x", {"B", "L", "C"}), given("weight", {"C", "K"}), optional("bias", {"C"}),
                              optional("initial_state", {"B", "C", "K"}), optional("mask", {"B", "L"}, DType::kU8)},
                   .outputs = {given("y", {"B", "L", "C"}), given("final_state", {"B", "C", "K"})},
                   .attributes = {"silu"}});
  specs.push_back({.name = "selective_scan",
                   .sizes = {"B", "L", "I", "N"},
                   .inputs = {given("x", {"B", "L", "I"}), given("dt", {"B", "L", "I"}), given("A", {"I", "N"}),
                              given("B", {"B", "L", "N"}), given("C", {"B", "L", "N"}), given("D", {"I"}),
                              optional("dt_bias", {"I"}), optional("z", {"B", "L", "I"}),
                              optional("initial_state", {"B", "I", "N"})},
                   .outputs = {given("y", {"B", "L", "I"}), given("final_state", {"B", "I", "N"})}});
  specs.push_back({.name = "ssd",
                   .sizes = {"B", "L", "Nh", "P", "G", "N"},
                   .inputs = {given("x", {"B", "L", "Nh", "P"}), given("dt", {"B", "L", "Nh"}), given("A", {"Nh"}),
                              given("B", {"B", "L", "G", "N"}), given("C", {"B", "L", "G", "N"}), given("D", {"Nh"}),
                              optional("dt_bias", {"Nh"}), optional("initial_state", {"B", "Nh", "P", "N"})},
                   .outputs = {given("y", {"B", "L", "Nh", "P"}), given("final_state", {"B", "Nh", "P", "N"})},
                   .attributes = {"chunk_size", "dt_min", "dt_max"},
                   .divides = {{"G", "Nh"}}});
  return specs;
}

}  // namespace

const OpTensor* OpSpec::input(const std::string& input_name) const {
  for (const OpTensor& tensor : inputs)
    if (tensor.name == input_name) return &tensor;
  return nullptr;
}

const std::vector<OpSpec>& op_specs() {
  static const std::vector<OpSpec> specs = make_specs();
  return specs;
}

const OpSpec& op_spec(const std::string& name) {
  std::vector<std::string> known;
  for (const OpSpec& spec : op_specs()) {
    if (spec.name == name) return spec;
    known.push_back(spec.name);
  }
  throw InputError("op " + name, "is not known", "nearest: " + nearest_list(name, known));
}

}  // namespace assay

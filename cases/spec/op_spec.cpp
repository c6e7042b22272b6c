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

// int64 entries of another size, from 0.
OpTensor entries_of(const std::string& size, const std::string& name, std::vector<std::string> sizes) {
  return {.name = name, .sizes = std::move(sizes), .dtype = DType::kI64, .indexes = size};
}

std::vector<OpSpec> make_specs() {
  std::vector<OpSpec> specs;
  specs.push_back({.name = "embedding",
                   .sizes = {"B", "L", "V", "H"},
                   .inputs = {entries_of("V", "ids", {"B", "L"}), given("weight", {"V", "H"})},
                   .outputs = {given("y", {"B", "L", "H"})}});
  specs.push_back({.name = "linear",
                   .sizes = {"T", "in", "out"},
                   .inputs = {given("x", {"T", "in"}), given("weight", {"out", "in"}), optional("bias", {"out"})},
                   .outputs = {given("y", {"T", "out"})}});
  specs.push_back({.name = "rms_norm",
                   .sizes = {"T", "H"},
                   .inputs = {given("x", {"T", "H"}), given("weight", {"H"}), optional("residual", {"T", "H"})},
                   .outputs = {given("y", {"T", "H"}), {.name = "sum", .sizes = {"T", "H"}, .with = "residual"}},
                   .attributes = {"epsilon", "zero_centred"}});
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
                   .sizes = {"B", "L", "I", "G", "N"},
                   .inputs = {given("x", {"B", "L", "I"}), given("dt", {"B", "L", "I"}), given("A", {"I", "N"}),
                              given("B", {"B", "L", "G", "N"}), given("C", {"B", "L", "G", "N"}), given("D", {"I"}),
                              optional("dt_bias", {"I"}), optional("z", {"B", "L", "I"}),
                              optional("initial_state", {"B", "I", "N"})},
                   .outputs = {given("y", {"B", "L", "I"}), given("final_state", {"B", "I", "N"})},
                   .divides = {{"G", "I"}}});
  specs.push_back({.name = "ssd",
                   .sizes = {"B", "L", "Nh", "P", "G", "N"},
                   .inputs = {given("x", {"B", "L", "Nh", "P"}), given("dt", {"B", "L", "Nh"}), given("A", {"Nh"}),
                              given("B", {"B", "L", "G", "N"}), given("C", {"B", "L", "G", "N"}), given("D", {"Nh"}),
                              optional("dt_bias", {"Nh"}), optional("initial_state", {"B", "Nh", "P", "N"})},
                   .outputs = {given("y", {"B", "L", "Nh", "P"}), given("final_state", {"B", "Nh", "P", "N"})},
                   .attributes = {"chunk_size", "dt_min", "dt_max"},
                   .divides = {{"G", "Nh"}}});
  specs.push_back(
      {.name = "gated_delta_rule",
       .sizes = {"B", "L", "Hk", "Hv", "K", "V"},
       .inputs = {given("q", {"B", "L", "Hk", "K"}), given("k", {"B", "L", "Hk", "K"}),
                  given("v", {"B", "L", "Hv", "V"}), given("g", {"B", "L", "Hv"}), given("beta", {"B", "L", "Hv"}),
                  optional("A", {"Hv"}), optional("dt_bias", {"Hv"}), optional("initial_state", {"B", "Hv", "K", "V"})},
       .outputs = {given("o", {"B", "L", "Hv", "V"}), given("final_state", {"B", "Hv", "K", "V"})},
       .attributes = {"l2norm", "sigmoid", "epsilon"},
       .divides = {{"Hk", "Hv"}}});
  specs.push_back({.name = "short_conv",
                   .sizes = {"B", "L", "S", "C", "K"},
                   .inputs = {given("bcx", {"B", "L", "S", "C"}), given("weight", {"C", "K"}), optional("bias", {"C"}),
                              optional("initial_state", {"B", "C", "K"}), optional("mask", {"B", "L"}, DType::kU8)},
                   .outputs = {given("y", {"B", "L", "C"}), given("final_state", {"B", "C", "K"})}});
  specs.push_back({.name = "rms_norm_gated",
                   .sizes = {"T", "G", "D"},
                   .inputs = {given("x", {"T", "G", "D"}), given("z", {"T", "G", "D"}), optional("weight", {"G", "D"}),
                              optional("shared_weight", {"D"})},
                   .outputs = {given("y", {"T", "G", "D"})},
                   .attributes = {"epsilon"}});
  specs.push_back({.name = "head_rms_norm",
                   .sizes = {"T", "S", "Nh", "D"},
                   .inputs = {given("x", {"T", "S", "Nh", "D"}), optional("weight", {"D"})},
                   .outputs = {given("y", {"T", "Nh", "D"})},
                   .attributes = {"slice", "epsilon", "zero_centred"}});
  specs.push_back({.name = "l2norm",
                   .sizes = {"T", "S", "Nh", "D"},
                   .inputs = {given("x", {"T", "S", "Nh", "D"})},
                   .outputs = {given("y", {"T", "Nh", "D"})},
                   .attributes = {"slice", "epsilon", "scale"}});
  specs.push_back({.name = "rotary",
                   .sizes = {"B", "L", "Nh", "hd"},
                   .inputs = {given("x", {"B", "L", "Nh", "hd"}), given("positions", {"B", "L"}, DType::kI64)},
                   .outputs = {given("y", {"B", "L", "Nh", "hd"})},
                   .attributes = {"width", "theta", "scaling", "factor", "original_length", "beta_fast", "beta_slow",
                                  "truncates", "attention_factor", "low_frequency_factor", "high_frequency_factor"}});
  specs.push_back({.name = "attention",
                   .sizes = {"B", "L", "T", "nq", "nkv", "hd", "hdv"},
                   .inputs = {given("q", {"B", "L", "nq", "hd"}), given("k", {"B", "nkv", "T", "hd"}),
                              given("v", {"B", "nkv", "T", "hdv"}), optional("mask", {"B", "T"}, DType::kU8)},
                   .outputs = {given("y", {"B", "L", "nq", "hdv"})},
                   .attributes = {"scale", "capacity"},
                   .divides = {{"nkv", "nq"}}});
  specs.push_back({.name = "kv_append",
                   .sizes = {"B", "L", "T", "nkv", "hd", "hdv"},
                   .inputs = {given("k", {"B", "L", "nkv", "hd"}), given("v", {"B", "L", "nkv", "hdv"}),
                              given("k_cache", {"B", "nkv", "T", "hd"}), given("v_cache", {"B", "nkv", "T", "hdv"})},
                   .outputs = {given("k_cache", {"B", "nkv", "T", "hd"}), given("v_cache", {"B", "nkv", "T", "hdv"})},
                   .attributes = {"past"}});
  specs.push_back({.name = "gate",
                   .sizes = {"T", "Nh", "W"},
                   .inputs = {given("x", {"T", "Nh", "W"}), given("gate", {"T", "Nh", "W"})},
                   .outputs = {given("y", {"T", "Nh", "W"})}});
  specs.push_back({.name = "router",
                   .sizes = {"T", "E"},
                   .inputs = {given("logits", {"T", "E"}), optional("bias", {"E"})},
                   .outputs = {given("routing", {"T", "E"})},
                   .attributes = {"router", "chosen", "normalises", "epsilon", "scaling", "groups", "chosen_groups"},
                   .divides = {{"groups", "E"}}});
  specs.push_back({.name = "experts",
                   .sizes = {"T", "k", "E", "X", "R", "F"},
                   .inputs = {given("x", {"T", "X"}), entries_of("E", "ids", {"T", "k"}), given("weights", {"T", "k"}),
                              given("first", {"E", "R", "X"}), given("down", {"E", "X", "F"})},
                   .outputs = {given("y", {"T", "X"})},
                   .attributes = {"activation"},
                   .divides = {{"F", "R"}}});
  specs.push_back({.name = "feed_forward",
                   .sizes = {"T", "F"},
                   .inputs = {given("gate", {"T", "F"}), optional("up", {"T", "F"})},
                   .outputs = {given("y", {"T", "F"})},
                   .attributes = {"activation", "multiplier"}});
  specs.push_back({.name = "scaled_add",
                   .sizes = {"T", "W"},
                   .inputs = {given("x", {"T", "W"}), optional("residual", {"T", "W"})},
                   .outputs = {given("y", {"T", "W"})},
                   .attributes = {"scale"}});
  specs.push_back({.name = "shared_gate",
                   .sizes = {"T", "W"},
                   .inputs = {given("x", {"T", "W"}), given("gate", {"T"}), optional("residual", {"T", "W"})},
                   .outputs = {given("y", {"T", "W"})}});
  specs.push_back(
      {.name = "argmax", .sizes = {"T", "V"}, .inputs = {given("x", {"T", "V"})}, .outputs = {given("y", {"T"})}});
  specs.push_back({.name = "gather_rows",
                   .sizes = {"R", "B", "I", "W"},
                   .inputs = {given("x", {"R", "I", "W"}), entries_of("R", "source", {"B"})},
                   .outputs = {given("y", {"B", "I", "W"})}});
  specs.push_back({.name = "gather_columns",
                   .sizes = {"T", "X", "W"},
                   .inputs = {given("x", {"T", "X"}), entries_of("X", "index", {"W"})},
                   .outputs = {given("y", {"T", "W"})}});
  specs.push_back({.name = "top_log_probs",
                   .sizes = {"T", "V", "k"},
                   .inputs = {given("x", {"T", "V"})},
                   .outputs = {given("values", {"T", "k"}), given("ids", {"T", "k"})}});
  specs.push_back({.name = "mask_rows",
                   .sizes = {"B", "L", "W"},
                   .inputs = {given("x", {"B", "L", "W"}), given("mask", {"B", "L"}, DType::kU8)},
                   .outputs = {given("y", {"B", "L", "W"})}});
  specs.push_back({.name = "residual_add",
                   .sizes = {"T", "W"},
                   .inputs = {given("x", {"T", "W"}), given("residual", {"T", "W"})},
                   .outputs = {given("y", {"T", "W"})}});
  specs.push_back({.name = "silu_gate",
                   .sizes = {"T", "W"},
                   .inputs = {given("x", {"T", "W"}), given("z", {"T", "W"})},
                   .outputs = {given("y", {"T", "W"})}});
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

#include "golden/kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cases/spec/error.hpp"
#include "golden/compose.hpp"

namespace assay::golden {
namespace {

using Json = nlohmann::json;

std::vector<PrecisionError> parse_errors(const Json& array, const Kind& kind, int64_t length, const Place& place) {
  std::vector<PrecisionError> errors;
  std::vector<std::string> computes;
  for (size_t i = 0; i < array.size(); ++i) {
    const Place here = place.below(i);
    PrecisionError error;
    error.compute = computes.emplace_back(array[i].at("compute"));
    error.logits = numbers_of(array[i], "logits", length, "one a token", here);
    error.marked = integers_of(array[i].at("marked"), here.below("marked"));
    for (size_t m = 0; m < error.marked.size(); ++m) {
      const Place mark = here.below("marked").below(m);
      if (error.marked[m] >= length)
        mark.refuse(fmt::format("position {} of a run of {} tokens", error.marked[m], length));
      if (m && error.marked[m] <= error.marked[m - 1])
        mark.refuse(fmt::format("position {} after {}: not ascending", error.marked[m], error.marked[m - 1]));
    }
    errors.push_back(std::move(error));
  }
  if (computes != kind.computes)
    place.refuse(
        fmt::format("is of {}; kind {} has {}", fmt::join(computes, ", "), kind.name, fmt::join(kind.computes, ", ")));
  return errors;
}

QuantizedWeight parse_quantized(const Json& document, bool has_nested_scales, const Place& place) {
  QuantizedWeight weight;
  weight.codes = document.at("codes");
  const auto blocks = static_cast<int64_t>(weight.codes.size());
  for (const char* member : {"absmax_codes", "nested_absmax", "offset"})
    if (document.contains(member) != has_nested_scales)
      place.refuse(fmt::format("\"{}\" {}", member, has_nested_scales ? "is missing" : "belongs to nf4dq"));
  if (document.contains("absmax") == has_nested_scales)
    place.refuse(fmt::format("\"absmax\" {}", has_nested_scales ? "belongs to nf4" : "is missing"));
  if (!has_nested_scales) {
    weight.absmax = numbers_of(document, "absmax", blocks, "one a block of codes", place);
    return weight;
  }
  weight.absmax_codes = integers_of(document.at("absmax_codes"), place.below("absmax_codes"));
  if (static_cast<int64_t>(weight.absmax_codes.size()) != blocks)
    place.below("absmax_codes")
        .refuse(fmt::format("holds {} numbers, expected {}: one a block of codes", weight.absmax_codes.size(), blocks));
  weight.nested_absmax = numbers_of(document, "nested_absmax", (blocks + kScalesTogether - 1) / kScalesTogether,
                                    "one for each 256 blocks", place);
  weight.offset = number_of(document.at("offset"), place.below("offset"));
  return weight;
}

Quantization parse_quantization(const Json& document, const Kind& kind, const Place& place) {
  Quantization quantization;
  quantization.unquantized = document.at("unquantized");
  for (const auto& [name, weight] : document.at("weights").items())
    quantization.weights.emplace(name,
                                 parse_quantized(weight, kind.has_nested_scales, place.below("weights").below(name)));
  return quantization;
}

// The largest difference of the sampled logits at each position.
std::vector<float> logit_errors(const Record& logits, const HostTensor& computed) {
  const int64_t width = element_count(logits.shape), columns = logits.columns();
  std::vector<float> errors;
  for (int64_t p = 0; p < logits.positions; ++p) {
    double largest = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double value = computed.at(p * width + (logits.sample.empty() ? c : logits.sample[c]));
      if (!std::isfinite(value))
        throw HarnessError("logits", fmt::format("the original computed {} at position {}", value, p),
                           "choose another seed or smaller weights for this config");
      largest = std::max(largest, std::abs(value - double{logits.values[p * columns + c]}));
    }
    errors.push_back(round_up(largest));
  }
  return errors;
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = {
      {.name = "f32"},
      {.name = "f16", .computes = {"float16"}, .is_rounded = true},
      {.name = "bf16", .computes = {"bfloat16"}, .is_rounded = true},
      {.name = "nf4", .computes = {"float32", "bfloat16"}, .is_quantized = true},
      {.name = "nf4dq", .computes = {"float32", "bfloat16"}, .is_quantized = true, .has_nested_scales = true}};
  return all;
}

const Kind* find_kind(std::string_view name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return &kind;
  return nullptr;
}

void parse_kind(const Json& document, const Place& root, Golden& golden) {
  const Kind* kind = find_kind(golden.kind);
  if (!kind) root.below("kind").refuse("\"" + golden.kind + "\" is no kind");
  const auto check_member = [&](const char* member, bool is_wanted) {
    if (document.contains(member) == is_wanted) return;
    root.below(member).refuse(
        fmt::format("a golden of kind {} {} this member", kind->name, is_wanted ? "has" : "lacks"));
  };
  check_member("errors", !kind->computes.empty());
  check_member("float32_weights", kind->is_rounded);
  check_member("quantization", kind->is_quantized);
  if (!kind->computes.empty())
    golden.errors =
        parse_errors(document.at("errors"), *kind, static_cast<int64_t>(golden.tokens.size()), root.below("errors"));
  const auto check_weight = [&](const std::string& name, const Place& place) {
    if (!golden.weight_digests.contains(name)) place.refuse("\"" + name + "\" is none of the weights");
  };
  if (kind->is_rounded) {
    golden.float32_weights = document.at("float32_weights");
    const Place place = root.below("float32_weights");
    for (size_t i = 0; i < golden.float32_weights.size(); ++i) {
      check_weight(golden.float32_weights[i], place.below(i));
      if (i && golden.float32_weights[i] <= golden.float32_weights[i - 1]) place.below(i).refuse("is not in order");
    }
  }
  if (kind->is_quantized) {
    golden.quantization = parse_quantization(document.at("quantization"), *kind, root.below("quantization"));
    for (const auto& [name, weight] : golden.quantization->weights)
      check_weight(name, root.below("quantization").below("weights"));
  }
}

void compose_kind(const WeightSource& tensors, const Json& run, const Json& input, const Json& manifest,
                  Golden& golden) {
  const std::string document_name = golden.id();
  const std::filesystem::path run_file = "run.json of " + document_name;
  try {
    // What the recorder says has a golden's members but for the errors' numbers, which are in the tensors.
    Json members;
    for (const char* member : {"float32_weights", "quantization"})
      if (run.contains(member)) members[member] = run.at(member);
    if (input.contains("errors")) {
      members["errors"] = input.at("errors");
      for (Json& error : members["errors"]) {
        const std::string name = "error/" + error.at("compute").get<std::string>() + "/logits";
        if (!tensors.has(name)) throw HarnessError(name, "the original's run did not write this tensor");
        const Record& logits = golden.probes.back();
        const HostTensor computed = tensors.read(name);
        if (computed.count() != logits.positions * element_count(logits.shape))
          throw HarnessError(name, "the original's run wrote " + to_string(computed.shape()));
        error["logits"] = logit_errors(logits, computed);
      }
    }
    if (members.contains("float32_weights"))
      std::sort(members["float32_weights"].begin(), members["float32_weights"].end());
    parse_kind(members, Place{run_file, ""}, golden);
  } catch (const InputError& error) {
    throw HarnessError(document_name, std::string("the original's run does not fit the kind: ") + error.what());
  } catch (const Json::exception& error) {
    throw HarnessError(document_name, std::string("the original's run does not fit the kind: ") + error.what());
  }
  if (!golden.quantization) return;
  for (const auto& [name, weight] : golden.quantization->weights) {
    const int64_t count = element_count(manifest.at("weights").at(name).at("shape").get<Shape>());
    const int64_t blocks = (count + kScaledTogether - 1) / kScaledTogether;
    if (static_cast<int64_t>(weight.codes.size()) != blocks)
      throw HarnessError(name, fmt::format("the original quantised it in {} blocks, but its {} elements make {}",
                                           weight.codes.size(), count, blocks));
  }
}

std::map<std::string, std::string> compose_digests(std::string_view kind, const Json& run, const Json& manifest) {
  const std::vector<std::string> kept = run.value("float32_weights", std::vector<std::string>{});
  const Json quantized = run.value("quantization", Json::object()).value("weights", Json::object());
  const Kind* known = find_kind(kind);
  const auto is_changed = [&](const std::string& name) {
    if (known && known->is_rounded) return std::find(kept.begin(), kept.end(), name) == kept.end();
    return known && known->is_quantized && quantized.contains(name);
  };
  std::map<std::string, std::string> digests;
  for (const auto& [name, weight] : manifest.at("weights").items()) {
    const std::string exported = weight.at("sha256");
    const std::string held = run.at("weights").value(name, "");
    if (held.empty() || (held != exported && !is_changed(name)))
      throw HarnessError(name, "the original did not compute with the exported weights: sha256 " +
                                   (held.empty() ? "absent" : held.substr(0, 16)) + ", exported " +
                                   exported.substr(0, 16));
    digests[name] = held.substr(0, 16);
  }
  if (run.at("weights").size() != digests.size())
    throw HarnessError("weights", "the original held tensors that were not exported");
  return digests;
}

}  // namespace assay::golden

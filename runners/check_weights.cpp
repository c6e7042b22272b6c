#include "runners/check_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/nf4.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace {

using golden::Finding;

Finding finding(const std::string& name, const std::string& what, const std::string& detail) {
  Finding found;
  found.probe = "weights." + name;
  found.what = what;
  found.detail = name + ": " + detail;
  return found;
}

// Blocks of one part that differ from the golden's, described by the first of them.
template <class Got, class Expected>
std::optional<Finding> compare_blocks(const std::string& name, const std::string& part, const std::vector<Got>& got,
                                      const std::vector<Expected>& expected) {
  if (got.size() != expected.size())
    return finding(name, part, fmt::format("{} blocks of {}, expected {}", got.size(), part, expected.size()));
  int64_t bad = 0, first = -1;
  for (size_t block = 0; block < got.size(); ++block)
    if (got[block] != expected[block] && bad++ == 0) first = static_cast<int64_t>(block);
  if (bad == 0) return std::nullopt;
  Finding found = finding(name, part, "");
  found.index = {first};
  found.bad = bad;
  found.of = static_cast<int64_t>(got.size());
  const auto at = static_cast<size_t>(first);
  found.detail = fmt::format("{}: {} of block {} is {}, expected {}; {} of {} blocks differ", name, part, first,
                             got[at], expected[at], bad, found.of);
  return found;
}

std::vector<std::string> code_digests(const HostTensor& codes) {
  std::vector<std::string> digests;
  constexpr size_t kBytes = kNf4Block / 2;
  for (size_t begin = 0; begin < codes.bytes().size(); begin += kBytes) {
    const size_t count = std::min(kBytes, codes.bytes().size() - begin);
    digests.push_back(sha256(codes.bytes().subspan(begin, count)).substr(0, 8));
  }
  return digests;
}

// Shortest text that reads back as the same float: equal texts are equal bits, and a 0 is told from a -0.
std::vector<std::string> exact(std::span<const float> values) {
  std::vector<std::string> result;
  for (const float value : values) result.push_back(fmt::format("{}", value));
  return result;
}

std::optional<Finding> check_quantised(const std::string& name, const std::vector<NamedTensor>& got,
                                       const golden::QuantizedWeight& expected, bool is_double) {
  if (got.empty()) return finding(name, "dtype", "is not quantised; the original quantises it");
  const auto part = [&got](std::string_view wanted) -> HostTensor {
    const auto found =
        std::find_if(got.begin(), got.end(), [wanted](const NamedTensor& tensor) { return tensor.name == wanted; });
    return found == got.end() ? HostTensor() : found->value;
  };
  const Nf4Weight weight{part("codes"), part("absmax"), part("nested_absmax"), part("offset")};
  const auto wrong_dtype = [&](const char* what, const HostTensor& tensor, DType dtype) -> std::optional<Finding> {
    if (tensor.dtype() == dtype && !tensor.absent()) return std::nullopt;
    return finding(name, what,
                   fmt::format("{} is {}, expected {}", what, tensor.absent() ? "missing" : dtype_name(tensor.dtype()),
                               dtype_name(dtype)));
  };
  std::optional<Finding> found = wrong_dtype("codes", weight.codes, DType::kU8);
  if (!found) found = wrong_dtype("absmax", weight.absmax, is_double ? DType::kU8 : DType::kF32);
  if (!found && is_double) found = wrong_dtype("nested_absmax", weight.nested_absmax, DType::kF32);
  if (!found && is_double) found = wrong_dtype("offset", weight.offset, DType::kF32);
  if (found) return found;
  // The offset before the scales that it is taken off, all of them before the codes: what came first is named.
  if (is_double) {
    found = compare_blocks(name, "offset", exact(weight.offset.values<float>()), exact({&expected.offset, 1}));
    if (!found)
      found = compare_blocks(name, "nested_absmax", exact(weight.nested_absmax.values<float>()),
                             exact(expected.nested_absmax));
    const auto absmax = weight.absmax.values<uint8_t>();
    if (!found)
      found = compare_blocks(name, "absmax", std::vector<int64_t>(absmax.begin(), absmax.end()), expected.absmax_codes);
  } else {
    found = compare_blocks(name, "absmax", exact(weight.absmax.values<float>()), exact(expected.absmax));
  }
  if (!found) found = compare_blocks(name, "codes", code_digests(weight.codes), expected.codes);
  return found;
}

Finding wrong_values(const WeightSpec& spec, const HostTensor& got, const std::string& digest,
                     const ModelConfig& config) {
  const HostTensor stored = open_weights(config)->read(spec.name);
  if (got.dtype() == DType::kF32 && got.count() == stored.count() && sha256(stored.bytes()) == sha256(got.bytes()))
    return finding(spec.name, "dtype", "is held as it is stored, in float32; the original rounds or quantises it");
  if (sha256(stored.bytes()).substr(0, 16) == digest) {
    int64_t at = 0;
    while (at < std::min(got.count(), stored.count()) && got.at(at) == stored.at(at)) ++at;
    if (at < std::min(got.count(), stored.count()))
      return finding(spec.name, "dtype",
                     fmt::format("{} holds {:.9g}; the original keeps the {:.9g} of the file",
                                 to_string(coordinates(at, spec.shape)), got.at(at), stored.at(at)));
  }
  return finding(spec.name, "digest",
                 fmt::format("{} {} with digest {:.16}, expected float32 {} with {}", dtype_name(got.dtype()),
                             to_string(got.shape()), sha256(got.bytes()), to_string(spec.shape), digest));
}

}  // namespace

LoadOptions load_options(const Case& test_case, const Capabilities& capabilities, const golden::Golden& golden) {
  LoadOptions options;
  options.weights = dtype_from_name(test_case.dtype);
  const auto& computes = capabilities.compute_dtypes;
  options.compute =
      std::find(computes.begin(), computes.end(), options.weights) == computes.end() ? DType::kF32 : options.weights;
  options.quantization = test_case.quantization;
  if (golden.quantization)
    for (const auto& [name, weight] : golden.quantization->weights) options.quantized.push_back(name);
  return options;
}

std::optional<golden::Finding> check_weights(const Model& model, const ModelConfig& config,
                                             const golden::Golden& golden) {
  if (golden.kind == "f32") return std::nullopt;
  for (const WeightSpec& spec : model_spec(config.model).weights(config)) {
    const auto digest = golden.weight_digests.find(spec.name);
    if (digest == golden.weight_digests.end())
      throw InputError("golden " + golden.id(), "has no digest of the weight " + spec.name, "record it again");
    if (golden.quantization) {
      const auto expected = golden.quantization->weights.find(spec.name);
      const std::vector<NamedTensor> got = model.quantized(spec.name);
      if (expected != golden.quantization->weights.end()) {
        auto found = check_quantised(spec.name, got, expected->second, golden.kind == "nf4dq");
        if (found) return found;
      } else if (!got.empty()) {
        return finding(spec.name, "dtype", "is quantised; the original leaves it as it is");
      }
    }
    const HostTensor got = model.weight(spec.name);
    if (got.dtype() != DType::kF32 || sha256(got.bytes()).substr(0, 16) != digest->second)
      return wrong_values(spec, got, digest->second, config);
  }
  return std::nullopt;
}

}  // namespace assay

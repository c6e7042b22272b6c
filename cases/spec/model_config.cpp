#include "cases/spec/model_config.hpp"

#include <fmt/format.h>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/select.hpp"
#include "cases/spec/weights.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

std::string where(const std::filesystem::path& file, const std::string& pointer) {
  return (file.empty() ? std::string("config") : file.string()) + " " + pointer;
}

std::string name_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string(), suffix = ".config.json";
  if (name.size() > suffix.size() && name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  return file.stem().string();
}

WeightsRecipe parse_weights(const Json& weights, const std::filesystem::path& file) {
  WeightsRecipe recipe;
  const bool is_synthetic = weights.at("kind") == "synthetic";
  const auto refuse = [&](const char* name, const char* problem) {
    throw InputError(where(file, "/weights"), fmt::format("\"{}\" {}", name, problem),
                     "synthetic weights have a seed (and fit), checkpoint weights a directory");
  };
  for (const char* name : {"seed", "fit"})
    if (!is_synthetic && weights.contains(name)) refuse(name, "does not belong to checkpoint weights");
  if (is_synthetic && weights.contains("directory")) refuse("directory", "does not belong to synthetic weights");
  if (is_synthetic) {
    if (!weights.contains("seed")) refuse("seed", "is missing");
    recipe.kind = WeightsRecipe::Kind::kSynthetic;
    recipe.seed = weights.at("seed").get<uint64_t>();
    if (weights.contains("fit")) recipe.fit = weights.at("fit");
  } else {
    if (!weights.contains("directory")) refuse("directory", "is missing");
    recipe.kind = WeightsRecipe::Kind::kCheckpoint;
    recipe.directory = std::filesystem::path(weights.at("directory").get<std::string>());
    if (recipe.directory.is_relative()) recipe.directory = file.parent_path() / recipe.directory;
  }
  return recipe;
}

// Word i % 4 of block i / 4, scaled to the vocabulary: 32 bits make the bias of this at most V / 2^32.
std::vector<int64_t> draw_tokens(const std::string& name, uint64_t seed, int64_t length, int64_t vocabulary) {
  const uint64_t key = fnv1a64(name) ^ seed;
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < length; ++i) {
    const auto block = static_cast<uint64_t>(i / 4);
    const std::array<uint32_t, 4> words =
        philox4x32_10({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                      {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
    tokens.push_back(static_cast<int64_t>(
        (static_cast<uint64_t>(words[static_cast<size_t>(i % 4)]) * static_cast<uint64_t>(vocabulary)) >> 32));
  }
  return tokens;
}

Input parse_input(const std::string& name, const Json& value, int64_t vocabulary, const std::filesystem::path& file) {
  const std::string pointer = "/inputs/" + name;
  Input input;
  input.name = name;
  input.greedy = value.value("greedy", int64_t{0});
  input.is_logits_only = value.value("record", "all") == "logits";
  input.has_end_states_only = value.value("record", "all") != "all";
  if (value.contains("beams")) {
    const Json& beams = value.at("beams");
    input.beams = Input::Beams{beams.at("width").get<int64_t>(), beams.at("steps").get<int64_t>()};
    if (input.beams->width >= vocabulary)
      throw InputError(where(file, pointer + "/beams/width"),
                       fmt::format("{} beams of a vocabulary of {}: the first step must drop a candidate",
                                   input.beams->width, vocabulary));
    if (input.greedy > 0)
      throw InputError(where(file, pointer + "/beams"), "beams start after the prompt, so the input has no \"greedy\"");
  }
  const bool is_listed = value.contains("tokens");
  if (is_listed == (value.contains("seed") || value.contains("length")))
    throw InputError(where(file, pointer), "needs either \"tokens\", or \"seed\" and \"length\"");
  if (is_listed) {
    input.tokens = value.at("tokens").get<std::vector<int64_t>>();
  } else {
    for (const char* member : {"seed", "length"})
      if (!value.contains(member)) throw InputError(where(file, pointer), fmt::format("\"{}\" is missing", member));
    input.tokens = draw_tokens(name, value.at("seed").get<uint64_t>(), value.at("length").get<int64_t>(), vocabulary);
  }
  for (size_t i = 0; i < input.tokens.size(); ++i)
    if (input.tokens[i] < 0 || input.tokens[i] >= vocabulary)
      throw InputError(where(file, fmt::format("{}/tokens/{}", pointer, i)),
                       fmt::format("token {} is outside the vocabulary [0, {})", input.tokens[i], vocabulary));
  return input;
}

std::string digest_of(const ModelConfig& config, const Json& weights) {
  Json recipe = {{"kind", weights.at("kind")}};
  for (const char* name : {"seed", "directory"})
    if (weights.contains(name)) recipe[name] = weights.at(name);
  return sha256(canonical(
      {{"model", config.model}, {"fields", config.fields}, {"weights", recipe}, {"profile", config.profile}}));
}

}  // namespace

const Input& ModelConfig::input(const std::string& input_name) const {
  if (const auto found = inputs.find(input_name); found != inputs.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& entry : inputs) known.push_back(entry.first);
  throw InputError("config " + id(), "has no input '" + input_name + "'",
                   "nearest: " + nearest_list(input_name, known));
}

std::vector<int64_t> ModelConfig::cuts_of(const Input& input) const {
  if (input.has_end_states_only) return {input.length()};
  std::vector<int64_t> reached;
  for (const int64_t cut : state_cuts)
    if (cut <= input.length()) reached.push_back(cut);
  return reached;
}

ModelConfig parse_config(const Json& document, const std::filesystem::path& file) {
  check_schema(document, "config.schema.json", file);
  ModelConfig config;
  config.model = document.at("model").get<std::string>();
  config.name = name_of(file);
  config.file = file;
  config.fields = document.at("config");
  config.weights = parse_weights(document.at("weights"), file);
  config.profile = document.value("profile", Json::object());
  config.state_cuts = document.value("state_cuts", std::vector<int64_t>{});
  for (size_t i = 1; i < config.state_cuts.size(); ++i)
    if (config.state_cuts[i] <= config.state_cuts[i - 1])
      throw InputError(where(file, fmt::format("/state_cuts/{}", i)), "cuts must ascend");

  const ModelSpec& spec = [&]() -> const ModelSpec& {
    try {
      return model_spec(config.model);
    } catch (const InputError& error) {
      throw InputError(where(file, "/model"), "'" + config.model + "' " + error.problem(), error.advice());
    }
  }();
  spec.check(config);
  const int64_t vocabulary = spec.vocabulary(config);
  for (const auto& [name, value] : document.at("inputs").items())
    config.inputs.emplace(name, parse_input(name, value, vocabulary, file));
  config.digest = digest_of(config, document.at("weights"));
  return config;
}

ModelConfig read_config(const std::filesystem::path& file) { return parse_config(read_json(file), file); }

}  // namespace assay

// ModelConfig: a model of a given shape with its weights, read from cases/models/<model>/<config>.config.json
// (schema cases/schema/config.schema.json). Fields keep their Hugging Face names; each family's typed view of them is
// in cases/spec/models/<model>.hpp.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// A named prompt. greedy > 0: the original appends that many greedy tokens, and the golden holds the whole sequence.
struct Input {
  std::string name;
  std::vector<int64_t> tokens;
  int64_t greedy = 0;
  // The golden holds the logits and the states at the end, and no other probe: what long and generated runs need.
  bool is_logits_only = false;
  // The golden holds every probe, and the states at the end only.
  bool has_end_states_only = false;
  // The original searches with `width` beams for `steps` tokens after the prompt.
  struct Beams {
    int64_t width = 0, steps = 0;
    bool operator==(const Beams&) const = default;
  };
  std::optional<Beams> beams;

  int64_t length() const { return static_cast<int64_t>(tokens.size()) + greedy; }  // of the golden's sequence
};

struct WeightsRecipe {
  enum class Kind { kSynthetic, kCheckpoint };
  Kind kind = Kind::kSynthetic;
  uint64_t seed = 0;                // synthetic
  nlohmann::json fit;               // figures that `assay fit` measured for this seed; null if it never ran
  std::filesystem::path directory;  // checkpoint
};

struct ModelConfig {
  std::string model;           // "mamba2"
  std::string name;            // "tiny"
  std::filesystem::path file;  // for messages; may be empty
  nlohmann::json fields;       // the model's config.json
  WeightsRecipe weights;
  nlohmann::json profile;  // {} unless the config pins one of the originals' divergences
  std::map<std::string, Input> inputs;
  std::vector<int64_t>
      state_cuts;      // prefix lengths after which goldens record states; those beyond an input are skipped
  std::string digest;  // sha256 of model, fields, weights recipe (kind, seed) and profile, canonically printed

  std::string id() const { return model + "/" + name; }
  const Input& input(const std::string& input_name) const;  // InputError with the nearest names
  // Prefix lengths at which the input's golden holds states: the cuts that it reaches, or its end alone.
  std::vector<int64_t> cuts_of(const Input& input) const;
};

// Reads, checks against the schema and against the model's own rules (cases/spec/models). Throws InputError naming
// file and JSON pointer.
ModelConfig read_config(const std::filesystem::path& file);

// The same from values already in memory (tests, checkpoints). `file` only names it in messages.
ModelConfig parse_config(const nlohmann::json& document, const std::filesystem::path& file);

}  // namespace assay

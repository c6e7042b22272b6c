// Case: one question about a config, read from cases/models/<model>/<aspect>.<variant>.json
// (schema cases/schema/case.schema.json). A case is a list of legs: each leg feeds rows to a subject in a given way, is
// judged against the golden run of each row's input, and then against other legs (agree).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/subject.hpp"

namespace assay {

struct Row {
  std::string input;
  int64_t length = 0;  // tokens used, a prefix of the input's whole sequence (greedy tokens included); 0 = all of it
  int64_t pad = 0;     // columns of left padding before them
  // causal: this position's token is replaced; judged before it only, and logits from it on must move.
  struct Change {
    int64_t position;
    int64_t token;
  };
  std::optional<Change> change;
};

// Sizes of the successive calls, in columns (padding included). kEach: the remaining columns one by one; kRest: the
// remaining columns in one call. JSON: numbers, "each", "rest".
struct CallSize {
  enum class Kind { kColumns, kEach, kRest };
  Kind kind = Kind::kRest;
  int64_t columns = 0;
};

struct Leg {
  std::string name;
  std::vector<Row> rows;  // every row has the same pad + length
  CacheKind cache = CacheKind::kNone;
  std::vector<CallSize> calls;               // kNone: each call is a sequence of its own, so one "rest"
  std::map<std::string, std::string> forms;  // op -> form; "*" = one leg for each form the subject declares
  int64_t pad_token = 0;
  int64_t limit = 0;  // columns of a static cache; 0 = those that the leg needs
  // Where the weights come from: drawn in memory, or a checkpoint in this form, written for the leg.
  enum class From { kMemory, kSafetensors, kSharded, kBin, kShardedBin };
  From from = From::kMemory;
  Residency residency = Residency::kResident;
  // Another request first, on the same session (reset) or on another session of the same model.
  struct Before {
    std::string input;
    int64_t length = 0;  // 0 = all of it
    bool same_session = true;
  };
  std::optional<Before> before;
  // generate: the subject chooses every token after the input's prompt itself; judged up to the first near-tie.
  bool free_running = false;
  // The subject's logits drive a beam search after each row's prompt: width beams for every row, or, exhaustive (width
  // 0), every token of the vocabulary for two steps.
  std::optional<Input::Beams> beams;
  bool is_exhaustive() const { return beams && beams->width == 0; }
};

inline constexpr const char* kOpModel = "ops";  // the "model" of op cases (cases/spec/op_case.hpp)

struct Case {
  std::string id;  // "mamba2/cache.splits" = path below cases/models without .json
  std::string model, config, aspect, variant;
  std::string tier;   // smoke, ci, slow
  std::string dtype;  // float32 ...
  std::string why;
  std::string kind;  // golden kind: f32 ...
  std::vector<Leg> legs;
  // Legs that must agree on every element at common positions: within the bound, or (exactly) bit for bit.
  std::vector<std::pair<std::string, std::string>> agree, agree_exactly;
  std::string quantization;              // "", "nf4", "nf4dq"; then it is the kind as well
  std::vector<std::string> unquantized;  // last parts of the names of modules that stay as they are
  bool needs_gpu = false;
  int64_t needs_memory_bytes = 0;
  nlohmann::json original_defect;  // null, or {what, releases}
  struct BoundOverride {
    double factor;
    std::string reason;
  };
  std::optional<BoundOverride> bound;
  std::filesystem::path file;
  std::string digest;  // sha256 of the canonical document

  bool is_op_case() const { return model == kOpModel; }
};

Case read_case(const std::filesystem::path& file);  // InputError naming file and pointer
Case parse_case(const nlohmann::json& document, const std::filesystem::path& file, const std::string& id);

// A file of the corpus that cannot be used: a case that is unfinished or wrong, a case of such a config, or the config
// itself. It stops what selects it (cases/spec/select.hpp) and nothing else.
struct BrokenCase {
  std::string id;  // as of a case; a config's is "mamba2/tiny.config"
  std::string model;
  std::string aspect;  // empty for a config
  // As far as the file could be read: empty where it does not say.
  std::string tier, config;
  std::filesystem::path file;
  std::string where, problem, advice;  // of its InputError

  [[noreturn]] void refuse() const;  // that InputError
};

// The whole corpus below a cases/models folder: every config and every case, checked against each other (a case's
// config and inputs exist, lengths fit, legs named in agree exist).
struct Corpus {
  std::filesystem::path root;                  // repository root: holds cases/ and golden/
  std::map<std::string, ModelConfig> configs;  // by "mamba2/tiny"
  std::vector<Case> cases;                     // sorted by id
  std::vector<Case> op_cases;                  // cases/ops as a run's rows know them: no config, no legs
  std::vector<BrokenCase> broken;              // sorted by id

  const ModelConfig& config_of(const Case& test_case) const {
    return configs.at(test_case.model + "/" + test_case.config);
  }
};
// InputError when the folder cannot be read or holds a folder that is no model's.
Corpus read_corpus(const std::filesystem::path& root);

}  // namespace assay

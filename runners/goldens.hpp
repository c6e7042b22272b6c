// GoldenStore: the goldens that cases cite, read once each and checked against their config before anything is
// compared.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/spec/model_config.hpp"
#include "golden/current_weights.hpp"
#include "golden/golden.hpp"
#include "runners/verdict.hpp"

namespace assay {

// A case ends here without a comparison: SKIP, NO_GOLDEN, STALE.
class NoVerdict : public std::runtime_error {
 public:
  NoVerdict(Status why, const std::string& text, std::optional<SkipReason> reason = std::nullopt)
      : std::runtime_error(text), status(why), skip(reason) {}
  Status status;
  std::optional<SkipReason> skip;
};

struct StoredGolden {
  golden::Golden golden;
  std::string digest;   // sha256 of the file
  std::string vacuity;  // why matching it would prove nothing; empty if it proves something
  std::string stale;    // why it is of other weights than the config's now
};

class GoldenStore {
 public:
  explicit GoldenStore(std::filesystem::path root) : root_(std::move(root)) {}

  // NoVerdict: NO_GOLDEN when there is no file, STALE when it was recorded from another config, other tokens or other
  // weights (golden/current_weights.hpp; a checkpoint is read whole for it, once). unquantized: as the case asks for.
  // InputError when the file is malformed or the checkpoint cannot be read. The reference stays valid.
  const StoredGolden& get(const ModelConfig& config, const std::string& input, const std::string& kind,
                          const std::vector<std::string>& unquantized = {});

  // For tests: a golden that lies in memory.
  void put(const golden::Golden& golden);

 private:
  std::filesystem::path root_;
  std::map<std::string, StoredGolden> stored_;
  golden::CurrentWeights weights_;
};

}  // namespace assay

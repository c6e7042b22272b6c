#include "runners/goldens.hpp"

#include <fmt/format.h>

#include <system_error>

#include "cases/spec/digest.hpp"
#include "cases/spec/json.hpp"
#include "golden/life.hpp"
#include "golden/vacuity.hpp"

namespace assay {

const StoredGolden& GoldenStore::get(const ModelConfig& config, const std::string& input, const std::string& kind,
                                     const std::vector<std::string>& unquantized) {
  config.input(input);  // an unknown name is an error with the nearest ones, not a missing golden
  const std::string id = config.id() + "." + input + "." + kind;
  auto found = stored_.find(id);
  if (found == stored_.end()) {
    const std::filesystem::path file = golden::golden_file(root_, config.model, config.name, input, kind);
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored))
      throw NoVerdict(Status::kNoGolden,
                      fmt::format("no golden {}; assay golden record config:{} --missing", id, config.id()));
    StoredGolden read{golden::read_golden(file), sha256(read_file(file)), "", ""};
    read.vacuity = golden::vacuity(read.golden);
    read.stale = weights_.stale_reason(read.golden, config);
    found = stored_.emplace(id, std::move(read)).first;
  }
  std::string stale = golden::stale_reason(found->second.golden, config, unquantized);
  if (stale.empty()) stale = found->second.stale;
  if (!stale.empty())
    throw NoVerdict(Status::kStale,
                    fmt::format("golden {}: {}; assay golden record config:{}", id, stale, config.id()));
  return found->second;
}

void GoldenStore::put(const golden::Golden& golden) {
  stored_[golden.id()] = {golden, "in-memory", golden::vacuity(golden), ""};
}

}  // namespace assay

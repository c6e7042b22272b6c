#include "fast/models/network.hpp"

#include "cases/spec/error.hpp"

namespace assay::fast {

#define ASSAY_FAST_MODEL(stem)                                                       \
  std::unique_ptr<Network> make_##stem(const ModelConfig& config, Weights& weights); \
  void check_##stem(const ModelConfig& config);
#include "fast/models.def"
#undef ASSAY_FAST_MODEL

namespace {

struct Family {
  const char* name;
  std::unique_ptr<Network> (*make)(const ModelConfig&, Weights&);
  void (*check)(const ModelConfig&);
};

constexpr Family kFamilies[] = {
#define ASSAY_FAST_MODEL(stem) {#stem, make_##stem, check_##stem},
#include "fast/models.def"
#undef ASSAY_FAST_MODEL
};

const Family& family(const ModelConfig& config) {
  for (const Family& family : kFamilies)
    if (config.model == family.name) return family;
  throw UnsupportedError(config.id(), "the fast path has no model '" + config.model + "'");
}

}  // namespace

std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.name);
  return names;
}

std::unique_ptr<Network> make_network(const ModelConfig& config, Weights& weights) {
  return family(config).make(config, weights);
}

void check_network(const ModelConfig& config) { family(config).check(config); }

}  // namespace assay::fast

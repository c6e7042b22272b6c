#include "reference/models/network.hpp"

#include "cases/spec/error.hpp"
#include "reference/models/bamba.hpp"
#include "reference/models/falcon_h1.hpp"
#include "reference/models/falcon_mamba.hpp"
#include "reference/models/granitemoehybrid.hpp"
#include "reference/models/jamba.hpp"
#include "reference/models/lfm2.hpp"
#include "reference/models/lfm2_moe.hpp"
#include "reference/models/mamba.hpp"
#include "reference/models/mamba2.hpp"
#include "reference/models/nemotron_h.hpp"
#include "reference/models/qwen3_5.hpp"
#include "reference/models/qwen3_5_moe.hpp"
#include "reference/models/qwen3_next.hpp"
#include "reference/models/zamba.hpp"
#include "reference/models/zamba2.hpp"

namespace assay::reference {

std::vector<std::string> network_names() {
  return {
#define ASSAY_REFERENCE_MODEL(stem, Class) #stem,
#include "reference/models/models.def"
#undef ASSAY_REFERENCE_MODEL
  };
}

std::unique_ptr<Network> make_network(const ModelConfig& config) {
#define ASSAY_REFERENCE_MODEL(stem, Class) \
  if (config.model == #stem) return std::make_unique<Class>(config);
#include "reference/models/models.def"
#undef ASSAY_REFERENCE_MODEL
  std::string known;
  for (const std::string& name : network_names()) known += (known.empty() ? "" : ", ") + name;
  throw UnsupportedError("model " + config.model, "the reference does not have this family", "it has: " + known);
}

}  // namespace assay::reference

// JSON, then a config of any family, and the tables that are made of a config which was accepted.
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_config.hpp"
#include "cases/spec/model_spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  try {
    const assay::ModelConfig config = assay::parse_config(
        assay::parse_json({reinterpret_cast<const char*>(bytes), count}, "fuzz.config.json"), "fuzz.config.json");
    const assay::ModelSpec& spec = assay::model_spec(config.model);
    for (const assay::WeightSpec& weight : spec.weights(config)) assay::element_count(weight.shape);
    for (const assay::ProbeSpec& probe : spec.probes(config)) assay::element_count(probe.shape);
  } catch (const assay::InputError&) {
  }
  return 0;
}

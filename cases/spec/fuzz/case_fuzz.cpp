// JSON, then a case or an op case.
#include "cases/spec/case.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/op_case.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  nlohmann::json document;
  try {
    document = assay::parse_json({reinterpret_cast<const char*>(bytes), count}, "fuzz.json");
  } catch (const assay::InputError&) {
    return 0;
  }
  try {
    assay::parse_case(document, "fuzz.json", "mamba2/cache.fuzz");
  } catch (const assay::InputError&) {
  }
  try {
    assay::parse_op_case(document, "fuzz.json", "ssd", "fuzz");
  } catch (const assay::InputError&) {
  }
  return 0;
}

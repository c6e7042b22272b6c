// JSON, then a golden. The content digest would stop the fuzzer at the door, so it is made right first; what is
// accepted must be the same again when it is written and read.
#include <cstdlib>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "golden/golden.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  namespace golden = assay::golden;
  try {
    nlohmann::json document = assay::parse_json({reinterpret_cast<const char*>(bytes), count}, "fuzz.json");
    if (document.is_object()) document["content_digest"] = golden::content_digest(document);
    const golden::Golden read = golden::parse_golden(document, "fuzz.json");
    const std::string text = golden::format(read);
    if (golden::format(golden::parse_golden(assay::parse_json(text, "again.json"), "again.json")) != text) std::abort();
  } catch (const assay::InputError&) {
  }
  return 0;
}

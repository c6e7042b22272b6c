// open_safetensors and every tensor of what it opens.
#include "cases/spec/fuzz/file_of.hpp"
#include "cases/spec/fuzz/read_all.hpp"
#include "cases/spec/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  const assay::fuzz::FileOf file(bytes, count);
  try {
    assay::fuzz::read_all(*assay::open_safetensors(file.path()), count);
  } catch (const assay::InputError&) {
  }
  return 0;
}

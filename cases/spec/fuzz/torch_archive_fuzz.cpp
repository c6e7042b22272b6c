// The zip archive by itself, then open_torch_bin and every tensor of what it opens.
#include "cases/spec/fuzz/file_of.hpp"
#include "cases/spec/fuzz/read_all.hpp"
#include "cases/spec/torch_archive.hpp"
#include "cases/spec/torch_bin.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t count) {
  const assay::fuzz::FileOf file(bytes, count);
  try {
    const assay::TorchArchive archive(file.path());
    for (const std::string& name : archive.names()) {
      try {
        if (archive.read_text(*archive.find(name), count).size() > count) std::abort();
      } catch (const assay::InputError&) {
      }
    }
    assay::fuzz::read_all(*assay::open_torch_bin(file.path()), count);
  } catch (const assay::InputError&) {
  }
  return 0;
}

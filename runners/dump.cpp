#include "runners/dump.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"

namespace assay {

void write_dump(const std::filesystem::path& folder, const Verdict& verdict, const Evidence& evidence) {
  std::string stem = verdict.subject + "." + verdict.case_id;
  std::replace(stem.begin(), stem.end(), '/', '.');
  const std::filesystem::path tensors = folder / (stem + ".safetensors");
  std::string text = fmt::format("{} on {}\n{}\n\n", verdict.case_id, verdict.subject, evidence.text);
  for (const NamedTensor& tensor : evidence.tensors)
    text +=
        fmt::format("{:<60} {} {}\n", tensor.name, dtype_name(tensor.value.dtype()), to_string(tensor.value.shape()));
  try {
    write_safetensors(tensors, evidence.tensors, {{"case", verdict.case_id}, {"subject", verdict.subject}});
    write_file(folder / (stem + ".txt"), text);
  } catch (const Error& error) {
    throw HarnessError(error.where(), error.problem(), "choose another folder with --dump DIR, or free some space");
  }
}

}  // namespace assay

#include "runners/subjects.hpp"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <system_error>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace fs = std::filesystem;

namespace {

// Of a library that was copied in part dlopen maps pages that are not there, and reading them kills the process.
bool is_cut_short(const fs::path& library) {
  Elf64_Ehdr header{};
  std::ifstream stream(library, std::ios::binary);
  if (!stream.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return false;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(library, error);
  return !error && size < header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
}

}  // namespace

SubjectPlace find_subject(const std::string& name, const fs::path& executable) {
  SubjectPlace place;
  place.name = name;
  place.is_built_in =
      std::find(std::begin(kBuiltInSubjects), std::end(kBuiltInSubjects), name) != std::end(kBuiltInSubjects);
  std::error_code ignored;
  if (place.is_built_in) {
    place.library = executable.parent_path() / ("libassay_" + name + ".so");
  } else if (name.find('/') != std::string::npos || name.ends_with(".so")) {
    place.library = fs::absolute(name, ignored);
  } else {
    const std::vector<std::string> known(std::begin(kBuiltInSubjects), std::end(kBuiltInSubjects));
    std::string advice = "built in: reference, fast; another engine: the path of its library, e.g. ./libengine.so";
    if (const auto close = nearest(name, known); !close.empty()) advice = "did you mean '" + close[0] + "'? " + advice;
    throw InputError("--subject", "unknown subject '" + name + "'", advice);
  }
  place.exists = fs::exists(place.library, ignored);
  if (!place.exists && !place.is_built_in)
    throw InputError("--subject", "no library '" + place.library.string() + "'", "give the path of a shared library");
  return place;
}

std::optional<Unavailable> missing_library(const SubjectPlace& place) {
  if (place.exists) return std::nullopt;
  if (place.name == "fast")
    return Unavailable{SkipReason::kNotBuilt, "fast: left out of this build (no nvcc); ci/install --cuda brings one"};
  return Unavailable{SkipReason::kNotBuilt,
                     place.name + ": left out of this build (ASSAY_REFERENCE=OFF, or no libtorch)"};
}

OpenedSubject open_subject(const SubjectPlace& place) {
  if (auto missing = missing_library(place)) return {nullptr, missing};
  const std::string where = "subject " + place.name;
  if (is_cut_short(place.library)) throw InputError(where, "the file is cut short", "build or copy it again");
  void* library = dlopen(place.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw InputError(where, dlerror(), "a library it needs is missing, or it was built for another machine");
  const auto version = reinterpret_cast<int (*)()>(dlsym(library, "assay_subject_version"));
  const auto open = reinterpret_cast<OpenSubject>(dlsym(library, "assay_open_subject"));
  if (!version || !open)
    throw InputError(where, "'" + place.library.string() + "' exports no assay_open_subject / assay_subject_version",
                     "write ASSAY_EXPORT_SUBJECT(YourSubject) once in it (cases/spec/subject.hpp)");
  if (const int built_for = version(); built_for != kSubjectVersion)
    throw InputError(where,
                     "built for version " + std::to_string(built_for) + " of the subject interface, this is " +
                         std::to_string(kSubjectVersion),
                     "build it again against this checkout's cases/spec/subject.hpp");
  try {
    OpenedSubject opened;
    opened.subject.reset(open());
    if (!opened.subject) throw InputError(where, "assay_open_subject returned null");
    if (const std::string& device = opened.subject->capabilities().device; device.starts_with("none"))
      return {nullptr,
              Unavailable{SkipReason::kNoGpu, place.name + ": no GPU can be used here (device " + device + ")"}};
    return opened;
  } catch (const UnsupportedError& error) {
    return {nullptr, Unavailable{SkipReason::kNoGpu, place.name + ": " + error.what()}};
  }
}

}  // namespace assay

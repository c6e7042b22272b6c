// Opening subjects by name. The runners know an implementation only as a shared library that exports
// assay_open_subject (cases/spec/subject.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/spec/subject.hpp"
#include "runners/verdict.hpp"

namespace assay {

inline constexpr const char* kBuiltInSubjects[] = {"reference", "fast"};

// Where a subject's library is: "reference" and "fast" lie beside the program; anything with a '/' or ending in ".so"
// is a third party's path. InputError with the nearest names for any other name.
struct SubjectPlace {
  std::string name;  // as given
  std::filesystem::path library;
  bool is_built_in = false;
  bool exists = false;
};
SubjectPlace find_subject(const std::string& name, const std::filesystem::path& executable);

// Why a subject cannot be used here, without it being an error.
struct Unavailable {
  SkipReason reason;
  std::string text;  // "fast: left out of this build (no nvcc); ci/install --cuda brings one"
};
std::optional<Unavailable> missing_library(const SubjectPlace& place);  // opens nothing

// The library stays loaded until the process ends: its code may own threads and static objects.
struct OpenedSubject {
  std::unique_ptr<Subject> subject;
  std::optional<Unavailable> unavailable;  // set instead of subject
};

// Unavailable (no_gpu): the subject says that its device is "none: <why>", or refuses to open with UnsupportedError.
// InputError: not a library, not a subject, or built for another version of the interface.
OpenedSubject open_subject(const SubjectPlace& place);

}  // namespace assay

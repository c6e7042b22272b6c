#include "runners/invocation.hpp"

#include <cstdlib>
#include <system_error>

#include "cases/spec/error.hpp"

namespace assay {

namespace fs = std::filesystem;

namespace {

bool holds_cases(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "cases" / "models", ignored);
}

fs::path search_upwards(fs::path folder) {
  for (;;) {
    if (holds_cases(folder)) return folder;
    if (!folder.has_parent_path() || folder == folder.parent_path()) return {};
    folder = folder.parent_path();
  }
}

fs::path chosen(const std::string& folder, const std::string& from) {
  if (!holds_cases(folder))
    throw InputError(from, "'" + folder + "' has no cases/models folder", "name the root of a checkout of Assay");
  return fs::canonical(folder);
}

const char* environment_root() {
  const char* value = std::getenv("ASSAY_ROOT");
  return value && *value ? value : nullptr;
}

}  // namespace

fs::path Invocation::root() const {
  if (!root_option.empty()) return chosen(root_option, "--root");
  if (const char* value = environment_root()) return chosen(value, "ASSAY_ROOT");
  std::error_code ignored;
  const fs::path here = fs::current_path(ignored);
  if (fs::path found = here.empty() ? fs::path() : search_upwards(here); !found.empty()) return found;
  if (fs::path found = search_upwards(executable.parent_path()); !found.empty()) return found;
  throw InputError("root", "no folder with cases/models above '" + here.string() + "' or above the program",
                   "give --root DIR or set ASSAY_ROOT to the root of a checkout of Assay");
}

bool Invocation::root_is_chosen() const { return !root_option.empty() || environment_root() != nullptr; }

fs::path executable_path() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw HarnessError("/proc/self/exe", error.message(), "is /proc mounted?");
  return self;
}

}  // namespace assay

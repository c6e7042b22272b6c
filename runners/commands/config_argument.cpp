#include "runners/commands/config_argument.hpp"

#include <fmt/format.h>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace fs = std::filesystem;

ModelConfig config_argument(const std::string& name, const Invocation& invocation) {
  if (name.ends_with(".json")) return read_config(name);
  const fs::path models = invocation.root() / "cases" / "models";
  std::error_code ignored;
  const fs::path file = models / (name + ".config.json");
  if (fs::exists(file, ignored)) return read_config(file);
  constexpr std::string_view kSuffix = ".config.json";
  std::vector<std::string> known;
  for (const auto& entry : fs::recursive_directory_iterator(models, ignored)) {
    std::string id = fs::relative(entry.path(), models).generic_string();
    if (id.ends_with(kSuffix)) known.push_back(id.substr(0, id.size() - kSuffix.size()));
  }
  const auto close = nearest(name, known);
  throw InputError("config", "there is no config '" + name + "'",
                   close.empty() ? "configs are cases/models/<model>/<name>.config.json"
                                 : fmt::format("nearest: {}", fmt::join(close, ", ")));
}

}  // namespace assay

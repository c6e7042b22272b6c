#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/case.hpp"
#include "cases/spec/check_case.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/op_case.hpp"

namespace assay {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  if (error)
    throw InputError(folder.string(), "cannot be read: " + error.message(),
                     "run inside the repository, or name its root with --root");
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Ids are compared letter by letter, typed by hand, and stand in file systems that do not tell upper from lower case.
void require_variant(const Case& test_case) {
  for (const char c : test_case.variant)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
      throw InputError(test_case.file.string(),
                       fmt::format("a variant is lower case letters, digits and '_', not '{}'", c), "rename the file");
}

// A member of the file as far as it can be read.
std::string text_in(const Json& document, const char* member) {
  return document.is_object() && document.contains(member) && document.at(member).is_string()
             ? document.at(member).get<std::string>()
             : "";
}

BrokenCase broken_case(const std::string& id, const fs::path& file, const Error& error) {
  BrokenCase broken;
  broken.id = id;
  const size_t slash = id.find('/'), dot = id.find('.', slash);
  broken.model = id.substr(0, slash);
  const std::string stem = id.substr(slash + 1, dot - slash - 1);
  const bool is_config = file.string().ends_with(".config.json");
  (is_config ? broken.config : broken.aspect) = stem;
  broken.file = file;
  broken.where = error.where();
  broken.problem = error.problem();
  broken.advice = error.advice();
  if (is_config) return broken;
  try {
    const Json document = read_json(file);
    broken.tier = text_in(document, "tier");
    broken.config = text_in(document, "config");
  } catch (const Error&) {
    // Then nothing is known of it.
  }
  return broken;
}

class Reader {
 public:
  explicit Reader(const fs::path& root) { corpus_.root = root; }

  Corpus read() && {
    for (const fs::path& folder : sorted_entries(corpus_.root / "cases" / "models"))
      if (fs::is_directory(folder)) read_model_folder(folder);
    const auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    std::sort(corpus_.cases.begin(), corpus_.cases.end(), by_id);
    check_cases();
    for (const fs::path& file : op_case_files(corpus_.root)) read_op_case_file(file);
    std::sort(corpus_.op_cases.begin(), corpus_.op_cases.end(), by_id);
    std::sort(corpus_.broken.begin(), corpus_.broken.end(), by_id);
    return std::move(corpus_);
  }

 private:
  void read_model_folder(const fs::path& folder) {
    const std::string model = folder.filename().string();
    try {
      model_spec(model);
    } catch (const InputError& error) {
      throw InputError(folder.string(), "is not the folder of a model: '" + model + "' " + error.problem(),
                       error.advice());
    }
    for (const fs::path& file : sorted_entries(folder)) {
      const std::string name = file.filename().string();
      if (!name.ends_with(".json") || name[0] == '.') continue;  // a leading dot is an unfinished write of ours
      const std::string id = model + "/" + name.substr(0, name.size() - std::string(".json").size());
      try {
        if (name.ends_with(".config.json")) {
          read_config_file(file, model);
        } else {
          Case test_case = read_case(file);
          require_variant(test_case);
          corpus_.cases.push_back(std::move(test_case));
        }
      } catch (const Error& error) {
        add_broken(id, file, error);
      }
    }
  }

  void read_config_file(const fs::path& file, const std::string& model) {
    ModelConfig config = read_config(file);
    if (config.model != model)
      throw InputError(file.string() + " /model", "'" + config.model + "' in the folder of '" + model + "'");
    const std::string id = config.id();
    corpus_.configs.emplace(id, std::move(config));
  }

  void check_cases() {
    CitedRuns runs;
    std::vector<Case> sound;
    for (Case& test_case : corpus_.cases) {
      try {
        require_sound_config(test_case);
        check_case(test_case, corpus_);
        runs.check(test_case);
        sound.push_back(std::move(test_case));
      } catch (const Error& error) {
        add_broken(test_case.id, test_case.file, error);
      }
    }
    corpus_.cases = std::move(sound);
  }

  void require_sound_config(const Case& test_case) const {
    const std::string id = test_case.model + "/" + test_case.config + ".config";
    for (const BrokenCase& broken : corpus_.broken)
      if (broken.id == id)
        throw InputError(test_case.file.string() + " /config", fmt::format("{}: {}", broken.where, broken.problem),
                         broken.advice);
  }

  void read_op_case_file(const fs::path& file) {
    try {
      corpus_.op_cases.push_back(row_of(read_op_case(file)));
    } catch (const Error& error) {
      add_broken(fmt::format("{}/{}.{}", kOpModel, file.parent_path().filename().string(), file.stem().string()), file,
                 error);
    }
  }

  void add_broken(const std::string& id, const fs::path& file, const Error& error) {
    corpus_.broken.push_back(broken_case(id, file, error));
  }

  Corpus corpus_;
};

}  // namespace

void BrokenCase::refuse() const { throw InputError(where, problem, advice); }

Corpus read_corpus(const fs::path& root) { return Reader(root).read(); }

}  // namespace assay

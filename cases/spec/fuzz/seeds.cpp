// Writes the seeds of every fuzz target: seeds ROOT FOLDER -> FOLDER/<target>/<name>. Binary formats are made here;
// cases, configs and goldens are those of the repository at ROOT, where they are small.
#include <cstdio>
#include <filesystem>
#include <string>

#include "cases/spec/json.hpp"
#include "cases/spec/safetensors.hpp"
#include "cases/spec/testing/torch_bytes.hpp"
#include "cases/spec/torch_bin.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;
using namespace testing;

constexpr uintmax_t kLargestSeed = 12'000;  // a schema takes its time over more

void write_pickles(const fs::path& folder) {
  const std::string tensor_of_six = tensor(storage("0", 6), 1, {2, 2}, {3, 1});
  write_file(folder / "dict", pickle(dict({{"a", tensor_of_six}, {"b", parameter(tensor_of_six)}})));
  write_file(folder / "half", pickle(dict({{"a", tensor(storage("0", 2, "HalfStorage"), 0, {2}, {1})}})));
  write_file(folder / "module",
             pickle(no_hooks() + "q\1(" + text("a") + tensor_of_six + "u}" + text("_metadata") + no_hooks() + "sb"));
  write_file(folder / "memo", pickle("}(" + text("a") + tensor_of_six + "q\7" + text("b") + "h\7u"));
  write_file(folder / "stack_global", "\x80\4}(" + text("a") + text("torch._utils") + text("_rebuild_tensor_v2") +
                                          "\x93\x94(" + storage("0", 3) + "K\1K\2\x85K\1\x85\x89" + no_hooks() +
                                          "tRu.");
  write_file(folder / "list", pickle("](" + number(1) + "\x88N" + text("x") + "\x87" + ")ea"));
}

void write_archives(const fs::path& folder) {
  const std::string six = floats({0, 1, 2, 3, 4, 5});
  const std::string body = pickle(dict({{"a", tensor(storage("0", 6), 0, {2, 3}, {3, 1})},
                                        {"turned", tensor(storage("0", 6), 0, {3, 2}, {1, 3})},
                                        {"b", tensor(storage("1", 6), 2, {2}, {2})}}));
  ZipEnd narrow;
  narrow.is_wide = false;
  write_file(folder / "wide", zip(torch_entries(body, {six, six})));
  write_file(folder / "narrow", zip(torch_entries(body, {six, six}), narrow));
  // One element as four gigabytes: refused, and a finding where it is not.
  const std::string expanded = pickle(dict({{"a", tensor(storage("0", 6), 0, {1 << 20, 1 << 10}, {0, 0})}}));
  write_file(folder / "expanded", zip(torch_entries(expanded, {six})));
  const HostTensor values({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  write_torch_bin(folder / "written", {{"a", DType::kF32, {2, 3}}}, [&](const TensorHeader&) { return values; });
}

void write_safetensors_files(const fs::path& folder) {
  const HostTensor values({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  write_safetensors(folder / "two", {{"a", values}, {"b", HostTensor({1}, std::vector<int64_t>{7})}}, {{"k", "v"}});
  write_safetensors(folder / "half", {{"h", HostTensor(DType::kBF16, {2})}, {"none", HostTensor(DType::kU8, {0})}}, {});
}

void copy_json(const fs::path& from, const fs::path& folder, const std::string& ending, const std::string& but) {
  const auto ends = [](const std::string& name, const std::string& with) {
    return name.size() >= with.size() && name.compare(name.size() - with.size(), with.size(), with) == 0;
  };
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(from)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || !ends(name, ending) || (!but.empty() && ends(name, but))) continue;
    if (entry.file_size() > kLargestSeed) continue;
    fs::copy_file(entry.path(), folder / (entry.path().parent_path().filename().string() + "." + name),
                  fs::copy_options::overwrite_existing);
  }
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  if (count != 3) {
    std::fprintf(stderr, "usage: %s ROOT FOLDER\n", arguments[0]);
    return 2;
  }
  const fs::path root = arguments[1], folder = arguments[2];
  for (const char* target : {"safetensors", "torch_archive", "pickle", "case", "config", "golden"})
    fs::create_directories(folder / target);
  assay::write_safetensors_files(folder / "safetensors");
  assay::write_archives(folder / "torch_archive");
  assay::write_pickles(folder / "pickle");
  // Texts of which std::regex would make a deep stack.
  const std::string deep(30'000, 'a');
  assay::write_file(
      folder / "case" / "deep",
      R"({"schema":"assay.case/1","config":"c","tier":"ci","dtype":"float32","why":"w","legs":[],"unquantized":[")" +
          deep + "\"]}");
  assay::write_file(folder / "golden" / "deep", R"({"schema":"assay.golden/1","config":")" + deep + "\"}");
  assay::copy_json(root / "cases/models", folder / "case", ".json", ".config.json");
  assay::copy_json(root / "cases/ops", folder / "case", ".json", "");
  assay::copy_json(root / "cases/models", folder / "config", ".config.json", "");
  assay::copy_json(root / "golden/models", folder / "golden", ".json", "");
  return 0;
}

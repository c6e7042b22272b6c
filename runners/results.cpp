#include "runners/results.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* kAdvice = "choose another folder with --out DIR, or free some space";

HarnessError cannot_write(const fs::path& file, int error) {
  return HarnessError(file.string(), fmt::format("cannot write: {}", std::strerror(error)), kAdvice);
}

void make_folder(const fs::path& folder, const std::string& option) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder, error))
    throw HarnessError(folder.string(),
                       fmt::format("cannot make the folder: {}", error ? error.message() : "a file is there"),
                       "choose another folder for " + option);
}

std::string text_of(const json& object) { return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

json parsed_line(std::string_view line, const fs::path& place) {
  constexpr const char* kLineAdvice =
      "the file was changed or damaged: run again without --resume, or delete that line";
  json object;
  try {
    object = parse_json(line, place);
    check_schema(object, "result.schema.json", place);
  } catch (const InputError& error) {
    throw InputError(place.string(), fmt::format("is not a line of results ({})", error.problem()), kLineAdvice);
  }
  return object;
}

json row_of(const Verdict& verdict) {
  json row = to_json(verdict);
  row["kind"] = "result";
  return row;
}

// A row is some kilobytes, so this is a run of a hundred thousand cases.
constexpr size_t kMostBytes = size_t{1} << 30;

}  // namespace

ResultWriter::ResultWriter(const fs::path& folder, const json& run, const std::vector<Verdict>& keep)
    : file_(folder / kResultsName) {
  make_folder(folder, "--out");
  if (!keep.empty()) {
    std::string text = text_of(run);
    for (const Verdict& verdict : keep) text += text_of(row_of(verdict));
    write_file(file_, text);
    for (const Verdict& verdict : keep) ++counts_[std::string(status_name(verdict.status))];
  }
  // Truncated only after the lock is held: another run's rows are not to be lost.
  const int descriptor = open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0644);
  if (descriptor < 0) throw cannot_write(file_, errno);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(descriptor);
    if (error == EWOULDBLOCK)
      throw HarnessError(file_.string(), "another run is writing there", "choose another folder with --out DIR");
    throw cannot_write(file_, error);
  }
  // A device (/dev/full) cannot be truncated, and needs not be.
  if (keep.empty() && ftruncate(descriptor, 0) != 0 && errno != EINVAL) {
    const int error = errno;
    close(descriptor);
    throw cannot_write(file_, error);
  }
  stream_ = fdopen(descriptor, "a");
  if (!stream_) {
    const int error = errno;
    close(descriptor);
    throw cannot_write(file_, error);
  }
  try {
    if (keep.empty()) line(run);
  } catch (...) {
    std::fclose(stream_);
    throw;
  }
}

ResultWriter::~ResultWriter() {
  if (stream_) std::fclose(stream_);
}

void ResultWriter::line(const json& object) {
  const std::string text = text_of(object);
  if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size() || std::fflush(stream_) != 0)
    throw cannot_write(file_, errno);
}

void ResultWriter::start(const std::string& subject, const std::string& case_id) {
  line({{"kind", "start"}, {"subject", subject}, {"case", case_id}});
}

void ResultWriter::result(const Verdict& verdict) {
  line(row_of(verdict));
  ++counts_[std::string(status_name(verdict.status))];
}

void ResultWriter::end(bool complete, const std::string& reason) {
  json counts = json::object();
  int64_t rows = 0;
  for (const auto& [status, count] : counts_) {
    counts[status] = count;
    rows += count;
  }
  line({{"kind", "end"}, {"rows", rows}, {"counts", counts}, {"complete", complete}, {"reason", reason}});
}

ResultFile read_results(const fs::path& file) {
  const std::string text = read_file(file, kMostBytes);
  ResultFile result;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    ++number;
    if (end == std::string::npos) break;  // cut in the middle of a line
    const fs::path place = file.string() + ":" + std::to_string(number);
    const json object = parsed_line(std::string_view(text).substr(begin, end - begin), place);
    begin = end + 1;
    const std::string kind = object.at("kind").get<std::string>();
    if ((kind == "run") != (number == 1)) throw InputError(place.string(), "the run's line is the first, and only it");
    if (kind == "run") {
      result.run = object;
    } else if (kind == "start") {
      result.interrupted.emplace_back(object.at("subject").get<std::string>(), object.at("case").get<std::string>());
    } else if (kind == "result") {
      result.rows.push_back(verdict_from_json(object));
      std::erase(result.interrupted, std::make_pair(result.rows.back().subject, result.rows.back().case_id));
    } else {
      result.has_end = true;
      result.complete = object.at("complete").get<bool>();
    }
  }
  if (result.run.is_null())
    throw InputError(file.string(), "is empty or cut in its first line",
                     "there is nothing to continue from; run it again");
  return result;
}

void check_writable(const fs::path& folder, const std::string& option) {
  make_folder(folder, option);
  const fs::path trial = folder / fmt::format(".assay-{}", getpid());
  std::FILE* stream = std::fopen(trial.c_str(), "w");
  const int error = errno;
  if (stream) std::fclose(stream);
  std::error_code ignored;
  fs::remove(trial, ignored);
  if (!stream)
    throw HarnessError(folder.string(), fmt::format("cannot write: {}", std::strerror(error)),
                       "choose another folder for " + option);
}

}  // namespace assay

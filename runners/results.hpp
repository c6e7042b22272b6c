// results.jsonl, the only result format that a run writes (schema runners/schema/result.schema.json): one object a
// line.
//
//   {"kind":"run",...}      first: schema, commit, versions, host, devices, threads, selection, arguments, time
//   {"kind":"start",...}    before each case; a start without a result is a case that was cut short
//   {"kind":"result",...}   one row a (subject, case)
//   {"kind":"end",...}      last: counts; missing in a file that was cut short
#pragma once

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runners/verdict.hpp"

namespace assay {

inline constexpr const char* kResultSchema = "assay.result/1";
inline constexpr const char* kResultsName = "results.jsonl";

// Writes and flushes line by line. Every failure (folder, disk full, another run writing there) is a HarnessError that
// names the file.
class ResultWriter {
 public:
  // Makes the folder. keep: rows of an earlier run that stay (--resume); the file is replaced in one step.
  ResultWriter(const std::filesystem::path& folder, const nlohmann::json& run, const std::vector<Verdict>& keep);
  ~ResultWriter();
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  void start(const std::string& subject, const std::string& case_id);
  void result(const Verdict& verdict);
  void end(bool complete, const std::string& reason);  // counts are those of the rows written or kept
  const std::filesystem::path& file() const { return file_; }

 private:
  void line(const nlohmann::json& object);

  std::filesystem::path file_;
  std::FILE* stream_ = nullptr;
  std::map<std::string, int64_t> counts_;
};

struct ResultFile {
  nlohmann::json run;
  std::vector<Verdict> rows;
  std::vector<std::pair<std::string, std::string>> interrupted;  // (subject, case) started and not finished
  bool has_end = false, complete = false;
};

// A last line that was cut is dropped; anything else that does not fit the schema is an InputError naming file and
// line.
ResultFile read_results(const std::filesystem::path& file);

// HarnessError unless files can be made in `folder`, which is made if need be.
void check_writable(const std::filesystem::path& folder, const std::string& option);

}  // namespace assay

#include "runners/run_line.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace assay {

using nlohmann::json;

namespace {

std::string now_text() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string host_text() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.nodename, name.sysname, name.machine) : "";
}

json subject_json(const SubjectProcess& subject) {
  const Capabilities& capabilities = subject.capabilities();
  json entry = {{"name", capabilities.name},
                {"argument", subject.argument()},
                {"device", capabilities.device},
                {"versions", capabilities.versions}};
  if (subject.unavailable()) {
    entry["unavailable"] = skip_name(subject.unavailable()->reason);
    entry["text"] = subject.unavailable()->text;
  }
  return entry;
}

}  // namespace

std::string commit_of(const std::filesystem::path& root) {
  return output_of({"git", "-C", root.string(), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"});
}

json run_line(const RunRequest& request, const Invocation& invocation, const RunSelection& selection,
              const std::vector<std::unique_ptr<SubjectProcess>>& subjects, const std::vector<std::string>& left_out,
              int64_t jobs, const std::string& commit) {
  json entries = json::array();
  std::vector<std::string> devices, versions{std::string("assay ") + ASSAY_VERSION};
  for (const auto& subject : subjects) {
    entries.push_back(subject_json(*subject));
    const Capabilities& capabilities = subject->capabilities();
    if (!capabilities.device.empty()) devices.push_back(capabilities.device);
    for (const std::string& version : capabilities.versions)
      if (std::count(versions.begin(), versions.end(), version) == 0) versions.push_back(version);
  }
  return {{"kind", "run"},
          {"schema", kResultSchema},
          {"commit", commit},
          {"versions", versions},
          {"host", host_text()},
          {"devices", devices},
          {"threads", std::thread::hardware_concurrency()},
          {"jobs", jobs},
          {"subjects", entries},
          {"left_out", left_out},
          {"selection", selection_json(request, static_cast<int64_t>(selection.cases.size()))},
          {"missing_cells", selection.missing_cells},
          {"arguments", invocation.arguments},
          {"time", now_text()},
          {"resumed", request.resume}};
}

}  // namespace assay

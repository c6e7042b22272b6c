#include "runners/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "cases/spec/case.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "runners/dump.hpp"
#include "runners/execute.hpp"
#include "runners/ops/run_ops.hpp"
#include "runners/process.hpp"
#include "runners/subjects.hpp"

namespace assay {

namespace {

using nlohmann::json;

// False when the parent is gone.
bool answer(const json& object) {
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = write(ChildProcess::kAnswerDescriptor, text.data() + done, text.size() - done);
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return true;
}

// CTest gives each test a GPU of its own through CTEST_RESOURCE_GROUP_0_GPUS="id:2,slots:1".
void use_granted_gpu() {
  const char* granted = std::getenv("CTEST_RESOURCE_GROUP_0_GPUS");
  if (!granted || std::getenv("CUDA_VISIBLE_DEVICES")) return;
  const std::string text = granted;
  const size_t begin = text.find("id:");
  if (begin == std::string::npos) return;
  setenv("CUDA_VISIBLE_DEVICES", text.substr(begin + 3, text.find_first_of(",;", begin) - begin - 3).c_str(), 0);
}

json ready(const Capabilities& capabilities) {
  return {{"kind", "ready"},
          {"name", capabilities.name},
          {"device", capabilities.device},
          {"versions", capabilities.versions},
          {"models", capabilities.models},
          {"is_accelerated", capabilities.is_accelerated}};
}

json broken(const Error& error) {
  return {{"kind", "broken"}, {"where", error.where()}, {"what", error.problem()}, {"advice", error.advice()}};
}

class Work {
 public:
  Work(const WorkerOptions& options, Subject& subject)
      : options_(options), subject_(subject), goldens_(options.root), execution_(subject, goldens_) {}

  json run(const json& task) {
    const std::string case_file = task.at("case").get<std::string>(), file = task.at("config").get<std::string>();
    Evidence evidence;
    Evidence* const wanted = options_.dump.empty() ? nullptr : &evidence;
    if (file.empty()) return result(run_op(read_op_case(case_file), wanted), evidence);
    const Case test_case = read_case(case_file);
    auto config = configs_.find(file);
    if (config == configs_.end()) config = configs_.emplace(file, read_config(file)).first;
    try {
      return result(execution_.run(test_case, config->second, wanted), evidence);
    } catch (const ScratchError& error) {
      json row = result(scratch_verdict(test_case, error), evidence);
      row["scratch"] = broken(error);
      return row;
    }
  }

 private:
  json result(const Verdict& verdict, const Evidence& evidence) const {
    if (!evidence.tensors.empty()) write_dump(options_.dump, verdict, evidence);
    json row = to_json(verdict);
    row["kind"] = "result";
    return row;
  }

  Verdict scratch_verdict(const Case& test_case, const ScratchError& error) const {
    Verdict verdict = blank_verdict(test_case, subject_.capabilities());
    verdict.status = Status::kError;
    verdict.reason = error.what();
    verdict.signature = signature_of(verdict);
    return verdict;
  }

  // The reference is opened beside the subject when the first op case needs it, unless it is the subject.
  Verdict run_op(const OpCase& op_case, Evidence* evidence) {
    if (subject_.capabilities().name == "reference") return run_op_case(op_case, subject_, subject_, {}, evidence);
    if (!reference_.subject && !reference_.unavailable)
      reference_ = open_subject(find_subject("reference", options_.executable));
    if (reference_.subject) return run_op_case(op_case, subject_, *reference_.subject, {}, evidence);
    Verdict verdict = blank_verdict(row_of(op_case), subject_.capabilities());
    verdict.status = Status::kSkip;
    verdict.skip = reference_.unavailable->reason;
    verdict.reason = "ops are judged by the reference; " + reference_.unavailable->text;
    verdict.signature = signature_of(verdict);
    return verdict;
  }

  const WorkerOptions& options_;
  Subject& subject_;
  OpenedSubject reference_;
  GoldenStore goldens_;
  Execution execution_;
  std::map<std::string, ModelConfig> configs_;
};

}  // namespace

int work(const WorkerOptions& options) {
  use_granted_gpu();
  OpenedSubject opened;
  try {
    opened = open_subject(find_subject(options.subject, options.executable));
  } catch (const std::exception& error) {
    answer({{"kind", "refused"}, {"text", error.what()}});
    return 0;
  }
  if (opened.unavailable) {
    answer({{"kind", "unavailable"},
            {"reason", skip_name(opened.unavailable->reason)},
            {"text", opened.unavailable->text}});
    return 0;
  }
  if (!answer(ready(opened.subject->capabilities()))) return 0;
  Work state(options, *opened.subject);
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (!answer(state.run(json::parse(line)))) return 0;
    } catch (const Error& error) {
      answer(broken(error));
      return 0;
    }
  }
  return 0;
}

}  // namespace assay

#include "runners/ops/run_ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>
#include <set>

#include "cases/spec/error.hpp"
#include "runners/execute.hpp"
#include "runners/ops/compare_op.hpp"
#include "runners/ops/problems.hpp"
#include "runners/ops/sample.hpp"
#include "runners/output_digest.hpp"

namespace assay {

namespace {

std::string place_of(const OpSpec& spec, const OpPoint& point, const std::string& form) {
  return point.text(spec) + (form.empty() ? "" : " [" + form + "]");
}

class OpRun {
 public:
  OpRun(const OpCase& op_case, Subject& subject, Subject& reference, const golden::Rule& rule, Verdict& verdict,
        Evidence* evidence)
      : op_case_(op_case),
        spec_(op_spec(op_case.op)),
        subject_(subject),
        reference_(reference),
        rule_(rule),
        verdict_(verdict),
        evidence_(evidence) {
    if (op_case.factor > 0) rule_.factor = op_case.factor;
  }

  void run() {
    for (const OpPoint& point : op_case_.points) {
      if (run_point(point)) continue;
      break;
    }
    verdict_.outputs = outputs_.text();
    verdict_.used = tally_.used;
    verdict_.used_by = tally_.used_by;
    verdict_.probes = tally_.probes;
    verdict_.elements = tally_.elements;
    verdict_.first = tally_.first;
    verdict_.kernels.assign(kernels_.begin(), kernels_.end());
    if (calls_ == 0) {
      verdict_.status = Status::kSkip;
      verdict_.skip = refused_.empty() ? SkipReason::kNoForm : SkipReason::kNoCapability;
      verdict_.reason = refused_.empty() ? nothing_to_run() : refused_;
      return;
    }
    if (refusals_ > 0) verdict_.notes.push_back(fmt::format("left out: {} calls: {}", refusals_, refused_));
    verdict_.notes.push_back(fmt::format("{} calls at {} shapes", calls_, op_case_.points.size()));
    verdict_.status = settle(tally_.first.has_value(), !fallback_.empty(), !hollow_.empty(), tally_.used);
    if (verdict_.status == Status::kFail)
      verdict_.reason = fmt::format("{} of {} at {}", tally_.first->what, tally_.first->probe, verdict_.leg);
    if (verdict_.status == Status::kFallback) verdict_.reason = fallback_;
    if (verdict_.status == Status::kHollow) verdict_.reason = hollow_;
  }

  const std::string& place() const { return place_; }  // of the call being made

 private:
  bool is_reference() const { return &subject_ == &reference_; }

  std::string nothing_to_run() const {
    if (is_reference() && !op_case_.sample.empty())
      return "a case about offsets, of which the reference computes a sample: it is what others are judged by";
    if (is_reference() && op_case_.forms.empty())
      return fmt::format("the reference has one form of {} for these shapes: it is what others are judged by",
                         op_case_.op);
    return fmt::format("subject '{}' has no form of {} that the case asks for", subject_.capabilities().name,
                       op_case_.op);
  }

  // False ends the case: there is a finding.
  bool run_point(const OpPoint& point) {
    std::vector<std::string> forms = forms_for(op_case_, point, subject_.capabilities());
    if (is_reference()) {
      const auto known = subject_.capabilities().forms.find(op_case_.op);
      const std::string own = known == subject_.capabilities().forms.end() ? "" : known->second.front();
      std::erase(forms, own);
    }
    // A sampled case is about offsets, of which the reference computes too little to be judged itself.
    if (forms.empty() || (is_reference() && !op_case_.sample.empty())) return true;
    place_ = place_of(spec_, point, "");
    const Sample sample(spec_, point, entries_at_ends(spec_, point, op_case_.sample));
    OpCall call = draw_call(op_case_, point);
    std::optional<ExpectedOutputs> expected;
    for (const std::string& form : forms)
      if (!run_form(point, sample, call, form, expected)) return false;
    return true;
  }

  // expected: made by the first form that runs, so that a subject without the op costs no reference run.
  bool run_form(const OpPoint& point, const Sample& sample, OpCall& call, const std::string& form,
                std::optional<ExpectedOutputs>& expected) {
    place_ = place_of(spec_, point, form);
    call.form = form;
    OpResult result;
    try {
      result = subject_.run_op(call);
    } catch (const UnsupportedError& error) {
      ++refusals_;
      if (refused_.empty()) refused_ = place_ + ": " + error.what();
      return true;
    }
    ++calls_;
    kernels_.insert(result.kernels.begin(), result.kernels.end());
    for (const NamedTensor& output : result.outputs) outputs_.add(output.name, output.value);
    if (fallback_.empty() && subject_.capabilities().is_accelerated && !names_kernel(result.kernels, op_case_.op))
      fallback_ = fmt::format("no kernel of {} ran at {}; these did: {}", op_case_.op, place_,
                              result.kernels.empty() ? "none" : fmt::format("{}", fmt::join(result.kernels, " ")));
    if (!expected) {
      call.form.clear();
      expected = sample.is_whole() ? expected_outputs(reference_, spec_, point, call, rule_)
                                   : expected_outputs(reference_, spec_, sample.part(), sample.cut(call), rule_);
      if (hollow_.empty() && !expected->hollow.empty()) hollow_ = expected->hollow + " at " + place_;
    }
    if (!sample.is_whole()) {
      tally_.merge(check_finite(spec_, point, result));
      result = sample.cut(result);
    }
    golden::Tally compared = compare_outputs(*expected, result);
    if (compared.first) compared.first = sample.in_whole(*compared.first);
    tally_.merge(compared);
    if (!tally_.first) return true;
    verdict_.leg = place_;
    if (evidence_) keep_evidence(sample.is_whole() ? call : sample.cut(call), *expected, result);
    return false;
  }

  void keep_evidence(const OpCall& call, const ExpectedOutputs& expected, const OpResult& result) {
    for (const NamedTensor& input : call.inputs) evidence_->tensors.push_back({"input." + input.name, input.value});
    for (const auto& [name, tensor] : expected.tensors) {
      evidence_->tensors.push_back({"expected." + name, tensor.value});
      HostTensor bound(DType::kF64, {1});
      bound.values<double>()[0] = tensor.bound;
      evidence_->tensors.push_back({"bound." + name, std::move(bound)});
    }
    for (const NamedTensor& output : result.outputs) evidence_->tensors.push_back({"got." + output.name, output.value});
    evidence_->text = fmt::format("{}\nfirst out of bounds: {}\nattributes:", place_, tally_.first->probe);
    for (const auto& [name, value] : call.attributes) evidence_->text += fmt::format(" {}={}", name, value);
  }

  const OpCase& op_case_;
  const OpSpec& spec_;
  Subject& subject_;
  Subject& reference_;
  golden::Rule rule_;
  Verdict& verdict_;
  Evidence* evidence_;
  golden::Tally tally_;
  std::set<std::string> kernels_;
  OutputDigest outputs_;
  std::string place_, fallback_, hollow_, refused_;
  int64_t calls_ = 0, refusals_ = 0;
};

}  // namespace

std::vector<std::string> forms_for(const OpCase& op_case, const OpPoint& point, const Capabilities& capabilities) {
  std::vector<std::string> forms{""};
  if (const auto known = capabilities.forms.find(op_case.op); known != capabilities.forms.end()) forms = known->second;
  const auto length = point.sizes.find("L");
  const bool is_step = length != point.sizes.end() && length->second == 1 &&
                       std::count(point.optional_inputs.begin(), point.optional_inputs.end(), "initial_state") > 0;
  std::erase_if(forms, [&](const std::string& form) {
    const bool is_asked = op_case.forms.empty() || std::count(op_case.forms.begin(), op_case.forms.end(), form) > 0;
    return !is_asked || (form == "update" && !is_step);
  });
  return forms;
}

Verdict run_op_case(const OpCase& op_case, Subject& subject, Subject& reference, golden::Rule rule,
                    Evidence* evidence) {
  Verdict verdict = blank_verdict(row_of(op_case), subject.capabilities());
  const auto begin = std::chrono::steady_clock::now();
  OpRun run(op_case, subject, reference, rule, verdict, evidence);
  const auto ends_as = [&](Status status, const std::string& reason) {
    verdict.status = status;
    verdict.reason = run.place().empty() ? reason : run.place() + ": " + reason;
  };
  try {
    run.run();
  } catch (const MemoryError& error) {
    ends_as(Status::kOom, error.what());
  } catch (const std::bad_alloc&) {
    ends_as(Status::kOom, "std::bad_alloc");
  } catch (const std::exception& error) {
    ends_as(Status::kError, error.what());
  }
  verdict.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  verdict.signature = signature_of(verdict);
  return verdict;
}

}  // namespace assay

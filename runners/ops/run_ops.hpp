// An op case on a subject, judged against the reference op at every shape and in every form: a Verdict.
#pragma once

#include "cases/spec/op_case.hpp"
#include "cases/spec/subject.hpp"
#include "golden/compare.hpp"
#include "runners/judge.hpp"
#include "runners/verdict.hpp"

namespace assay {

// The forms of a subject that take this call, of those that the case names: "" where the subject has no choice of forms
// of the op. An update is one step on a stored state: it takes L = 1 with an initial state only.
std::vector<std::string> forms_for(const OpCase& op_case, const OpPoint& point, const Capabilities& capabilities);

// Never throws for what subject, reference or case do wrong: that is the verdict's status and reason. Where subject and
// reference are one, its other forms are compared with its default; SKIP (no_form) where it has one form only, since a
// comparison of a number with itself proves nothing.
// evidence: filled for a failing case when given: inputs, expected and got outputs and bounds of the failing call.
Verdict run_op_case(const OpCase& op_case, Subject& subject, Subject& reference, golden::Rule rule = {},
                    Evidence* evidence = nullptr);

}  // namespace assay

// The run: subjects in processes of their own, one a (subject, model), fed case by case, watched, restarted after a
// crash; rows written as they end.
#pragma once

#include "runners/console.hpp"
#include "runners/invocation.hpp"
#include "runners/run_request.hpp"

namespace assay {

// Returns the exit code. SIGINT, SIGTERM or SIGHUP end it with the running case NOT_RUN, an end line that says
// complete: false, and kExitHarness.
int run_cases(RunRequest request, const Invocation& invocation, Console console);

}  // namespace assay

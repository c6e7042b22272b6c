// Hollow: does a config prove anything on a subject? Checked once for each (subject, config): two inputs, every probe
// with a norm, not mostly zeros, and not the same for both.
#pragma once

#include <string>

#include "cases/spec/subject.hpp"

namespace assay {

// Why the config's outputs prove nothing; empty when they do. Errors are the subject's.
std::string hollow_reason(Model& model, const ModelConfig& config, const Capabilities& capabilities);

// The same rule on two traces of one row; for tests too.
std::string hollow_reason(const Trace& a, const Trace& b);

}  // namespace assay

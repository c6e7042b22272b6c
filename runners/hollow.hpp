// Hollow: does a config prove anything on a subject? Checked once for each (subject, config): two inputs, every probe
// with a norm, not mostly zeros (unless the probe table calls it sparse), and not the same for both.
#pragma once

#include <set>
#include <string>

#include "cases/spec/subject.hpp"

namespace assay {

// Why the config's outputs prove nothing; empty when they do. Errors are the subject's.
std::string hollow_reason(Model& model, const ModelConfig& config, const Capabilities& capabilities);

// The same rule on two traces of one row; for tests too. sparse: probes that may be mostly zero.
std::string hollow_reason(const Trace& a, const Trace& b, const std::set<std::string>& sparse = {});

}  // namespace assay

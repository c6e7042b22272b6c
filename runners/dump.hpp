// --dump: what a failing case computed, as safetensors with a text file beside it that says what the tensors are.
#pragma once

#include <filesystem>

#include "runners/judge.hpp"
#include "runners/verdict.hpp"

namespace assay {

// An op case's: input.<name>, expected.<name>, got.<name> and bound.<name> of its failing call.
// <folder>/<subject>.<model>.<aspect>.<variant>.{safetensors,txt}. HarnessError when they cannot be written.
void write_dump(const std::filesystem::path& folder, const Verdict& verdict, const Evidence& evidence);

}  // namespace assay

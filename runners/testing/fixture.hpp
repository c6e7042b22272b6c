// A small checkout of its own for tests of runs: one config of mamba, cases, and goldens that the tiny subject computed
// when it was honest. What these tests ask is whether a run notices and survives, not whether mamba is right.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cases/spec/case.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/subject.hpp"
#include "golden/golden.hpp"

namespace assay::testing {

using Folder = ScratchFolder;

Subject& tiny_subject();  // opened once for the test program

ModelConfig
small_config();  // mamba/small: inputs a (9 tokens), b (9, other from the first), one, greedy (3 and 12), logits (b's,
                 // recorded without other probes), beams (3) and beams_late (2), each 2 beams for 4 steps

// A case of mamba/small from its legs and agree lists as JSON text.
Case small_case(const std::string& legs, const std::string& agree = "[]");

// The whole run of an input by a subject, every element kept, with a floor of 1e-6 of the tensor's scale.
golden::Golden recorded(Subject& subject, const ModelConfig& config, const std::string& input);

// Writes cases/models/mamba/{small.config,logits.*,cache.*}.json and the goldens below root.
void write_checkout(const std::filesystem::path& root);

}  // namespace assay::testing

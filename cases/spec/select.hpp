// Selectors: which cases a command is about. A selector is a model ("mamba2"), a glob over case ids ("*/cache.*"), a
// term "model:", "aspect:", "op:", "tier:", "config:" followed by a name or glob, or "@file" with one selector a line.
// Several selectors: union. Op cases are those of the model "ops": "ops/*", "ops/ssd.edges", and "op:ssd" beside the
// models' cases.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/nearest.hpp"

namespace assay {

inline constexpr const char* kAspects[] = {"logits", "generate", "padding",      "batch",  "cache",
                                           "causal", "mixer",    "beams",        "long",   "fp16",
                                           "bf16",   "int4",     "static_cache", "offload"};

bool glob_matches(std::string_view pattern, std::string_view text);  // * and ?

// The models (of models.def, in its order) of which the selectors take every case there is or could be, so that a model
// without any case is among them: "mamba2", "mamba*", "model:*", "*".
std::vector<std::string> whole_models(const Corpus& corpus, const std::vector<std::string>& selectors);

struct Selected {
  std::vector<const Case*> cases;         // in corpus order, then op cases
  std::vector<const BrokenCase*> broken;  // whose name, or what is known of them, is selected too
};
// InputError: an unknown name (with the nearest ones) or nothing selected.
Selected select_all(const Corpus& corpus, const std::vector<std::string>& selectors);

// The cases alone. The error of a broken case that is selected: it must not be left out without a word.
std::vector<const Case*> select_cases(const Corpus& corpus, const std::vector<std::string>& selectors);

}  // namespace assay

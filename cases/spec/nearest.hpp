// Nearest: which known names a wrong one may have meant.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Up to three known names close to a wrong one (a third of the letters differ at most, or it is a part), nearest first.
std::vector<std::string> nearest(const std::string& wrong, const std::vector<std::string>& known);
// The same as text for an error's advice: "mamba2, mamba"; some of what there is where none is close.
std::string nearest_list(const std::string& wrong, const std::vector<std::string>& known);

}  // namespace assay

// Which kernel a session's sequence ops go through: by default the update kernel for one new column on a warm cache and
// the sequence (chunked) kernel otherwise, and for attention and experts by their sizes; a form asked for by name holds
// for every call. short_conv holds a causal_conv1d and follows its form too.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fast/blocks/pass.hpp"

namespace assay::fast {

// op -> forms, the default first. step_graph is no op: its one form says that steps through a static cache are replays.
const std::map<std::string, std::vector<std::string>>& op_forms();

// UnsupportedError naming op and form: an op without forms, or not one of its forms.
void check_forms(const std::map<std::string, std::string>& forms);
// The choice for op; forms have been checked.
FormChoice form_choice(const std::map<std::string, std::string>& forms, const std::string& op);
SequenceForm form_of_call(FormChoice choice, int64_t columns, bool is_warm);
// The forms of a call of `columns` columns; forms have been checked.
PassForms pass_forms(const std::map<std::string, std::string>& forms, int64_t columns, bool is_warm);

}  // namespace assay::fast

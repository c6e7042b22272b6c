// Which kernel a session's sequence ops go through: by default the update kernel for one new column on a warm cache and
// the sequence (chunked) kernel otherwise; a form asked for by name holds for every call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fast/blocks/sequence_ops.hpp"

namespace assay::fast {

// op -> forms, the default first.
const std::map<std::string, std::vector<std::string>>& op_forms();

enum class FormChoice { kByCall, kSequence, kUpdate };

// UnsupportedError naming op and form: an op without forms, or not one of its forms.
void check_forms(const std::map<std::string, std::string>& forms);
// The choice for op; forms have been checked.
FormChoice form_choice(const std::map<std::string, std::string>& forms, const std::string& op);
SequenceForm form_of_call(FormChoice choice, int64_t columns, bool is_warm);

}  // namespace assay::fast

// OpForms: the forms of an op that a case may ask for by name. A form that nobody has would be skipped on every subject
// for ever, so the names are known: those of the subjects built here. Another engine's own form has a colon in its
// name, "engine:form", both in the case and in what the engine declares.
#pragma once

#include <string>
#include <vector>

namespace assay {

// Of the reference and the fast path together; empty for an op that has one form only.
const std::vector<std::string>& forms_of_op(const std::string& op);

// InputError at `where` with the nearest names. "*" is any form.
void check_form(const std::string& op, const std::string& form, const std::string& where);

}  // namespace assay

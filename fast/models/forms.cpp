#include "fast/models/forms.hpp"

#include <algorithm>

#include "cases/spec/error.hpp"

namespace assay::fast {

const std::map<std::string, std::vector<std::string>>& op_forms() {
  static const std::map<std::string, std::vector<std::string>> forms = {
      {"attention", {"prefill", "decode"}},
      {"causal_conv1d", {"sequence", "update"}},
      {"experts", {"grouped", "gemv"}},
      {"gated_delta_rule", {"chunked", "update"}},
      {"linear", {"cublaslt", "gemv"}},
      {"selective_scan", {"sequence", "update"}},
      {"short_conv", {"sequence", "update"}},
      {"ssd", {"chunked", "update"}},
      {"step_graph", {"replay"}},
  };
  return forms;
}

void check_forms(const std::map<std::string, std::string>& forms) {
  for (const auto& [op, form] : forms) {
    const auto known = op_forms().find(op);
    if (known == op_forms().end()) throw UnsupportedError("op " + op, "has no forms to choose from in the fast path");
    if (std::find(known->second.begin(), known->second.end(), form) == known->second.end()) {
      std::string list;
      for (const std::string& name : known->second) list += (list.empty() ? "" : ", ") + name;
      throw UnsupportedError("op " + op, "the fast path has no form '" + form + "'", "forms: " + list);
    }
  }
}

FormChoice form_choice(const std::map<std::string, std::string>& forms, const std::string& op) {
  const auto asked = forms.find(op);
  if (asked == forms.end()) return FormChoice::kByCall;
  return asked->second == op_forms().at(op).front() ? FormChoice::kSequence : FormChoice::kUpdate;
}

SequenceForm form_of_call(FormChoice choice, int64_t columns, bool is_warm) {
  if (choice == FormChoice::kByCall) return columns == 1 && is_warm ? SequenceForm::kUpdate : SequenceForm::kSequence;
  return choice == FormChoice::kUpdate ? SequenceForm::kUpdate : SequenceForm::kSequence;
}

PassForms pass_forms(const std::map<std::string, std::string>& forms, int64_t columns, bool is_warm) {
  const auto of = [&](const std::string& op) { return form_of_call(form_choice(forms, op), columns, is_warm); };
  return {.causal_conv1d = of("causal_conv1d"),
          .short_conv = of(forms.contains("short_conv") ? "short_conv" : "causal_conv1d"),
          .selective_scan = of("selective_scan"),
          .ssd = of("ssd"),
          .gated_delta_rule = of("gated_delta_rule"),
          .attention = form_choice(forms, "attention"),
          .experts = form_choice(forms, "experts")};
}

}  // namespace assay::fast

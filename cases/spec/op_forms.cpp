#include "cases/spec/op_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "cases/spec/error.hpp"
#include "cases/spec/nearest.hpp"

namespace assay {

const std::vector<std::string>& forms_of_op(const std::string& op) {
  static const std::map<std::string, std::vector<std::string>> forms = {
      {"attention", {"prefill", "decode"}},   {"causal_conv1d", {"sequence", "update"}},
      {"experts", {"grouped", "gemv"}},       {"gated_delta_rule", {"recurrent", "chunked", "update"}},
      {"linear", {"cublaslt", "gemv"}},       {"selective_scan", {"recurrent", "sequence", "update"}},
      {"short_conv", {"sequence", "update"}}, {"ssd", {"recurrent", "chunked", "update"}},
  };
  static const std::vector<std::string> none;
  const auto found = forms.find(op);
  return found == forms.end() ? none : found->second;
}

void check_form(const std::string& op, const std::string& form, const std::string& where) {
  if (form == "*") return;
  if (const size_t colon = form.find(':'); colon != std::string::npos && colon > 0 && colon + 1 < form.size()) return;
  const std::vector<std::string>& known = forms_of_op(op);
  if (std::find(known.begin(), known.end(), form) != known.end()) return;
  throw InputError(where, fmt::format("{} has no form '{}'", op, form),
                   fmt::format("nearest: {}; \"*\" is every form, and an engine's own is written \"engine:form\"",
                               nearest_list(form, known)));
}

}  // namespace assay

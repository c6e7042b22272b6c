#include "reference/forms.hpp"

#include <algorithm>

#include "cases/spec/error.hpp"

namespace assay::reference {

namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& known_forms() {
  static const std::map<std::string, std::vector<std::string>> forms = {
      {"causal_conv1d", {"sequence", "update"}},
      {"gated_delta_rule", {"recurrent", "chunked"}},
      {"selective_scan", {"recurrent"}},
      {"ssd", {"recurrent", "chunked"}},
  };
  return forms;
}

Forms::Forms(const std::map<std::string, std::string>& chosen) {
  for (const auto& [op, form] : chosen) {
    const auto known = known_forms().find(op);
    if (known == known_forms().end()) {
      std::vector<std::string> ops;
      for (const auto& [name, forms] : known_forms()) ops.push_back(name);
      throw UnsupportedError("op " + op, "the reference has no forms of it to choose from",
                             "ops with forms: " + listed(ops));
    }
    if (form.empty()) continue;
    if (std::count(known->second.begin(), known->second.end(), form) == 0)
      throw UnsupportedError("op " + op, "the reference has no form '" + form + "'",
                             "known forms: " + listed(known->second));
    chosen_[op] = form;
  }
}

const std::string& Forms::of(const std::string& op) const {
  const auto chosen = chosen_.find(op);
  return chosen == chosen_.end() ? known_forms().at(op).front() : chosen->second;
}

}  // namespace assay::reference

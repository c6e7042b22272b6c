// Forms: which factoring of an op a session uses. The first form of an op is its default.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay::reference {

// op -> the forms the reference has of it
const std::map<std::string, std::vector<std::string>>& known_forms();

class Forms {
 public:
  Forms() = default;
  // UnsupportedError for an unknown op or form, naming the known ones. An empty form is the default.
  explicit Forms(const std::map<std::string, std::string>& chosen);

  const std::string& of(const std::string& op) const;

 private:
  std::map<std::string, std::string> chosen_;
};

}  // namespace assay::reference

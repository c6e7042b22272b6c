#include "cases/spec/subject.hpp"

#include "cases/spec/error.hpp"

namespace assay {

void Session::reorder(const std::vector<int64_t>&) { throw UnsupportedError("session", "cannot reorder rows"); }
void Session::crop(int64_t) { throw UnsupportedError("session", "cannot crop its cache"); }

const HostTensor* OpCall::input(std::string_view name) const {
  for (const NamedTensor& tensor : inputs)
    if (tensor.name == name) return &tensor.value;
  return nullptr;
}

const HostTensor& OpCall::required(std::string_view name) const {
  if (const HostTensor* tensor = input(name)) return *tensor;
  throw InputError("op " + op, "input '" + std::string(name) + "' is missing");
}

double OpCall::attribute(std::string_view name, double otherwise) const {
  const auto found = attributes.find(std::string(name));
  return found == attributes.end() ? otherwise : found->second;
}

OpResult Subject::run_op(const OpCall& call) {
  throw UnsupportedError("op " + call.op, "subject '" + capabilities().name + "' does not run ops alone");
}

OpTiming Subject::time_op(const OpCall& call, int) {
  throw UnsupportedError("op " + call.op, "subject '" + capabilities().name + "' does not time ops");
}

}  // namespace assay

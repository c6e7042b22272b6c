#include "cases/spec/pickle.hpp"

#include <fmt/format.h>

#include "cases/spec/error.hpp"
#include "cases/spec/pickle_machine.hpp"
#include "cases/spec/printable.hpp"

namespace assay {

std::string PickleValue::description() const {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return number ? "True" : "False";
    case Kind::kInt:
      return fmt::format("the number {}", number);
    case Kind::kFloat:
      return "a float";
    case Kind::kText:
      return "the string '" + printable(text) + "'";
    case Kind::kTuple:
      return fmt::format("a tuple of {}", items.size());
    case Kind::kList:
      return fmt::format("a list of {}", items.size());
    case Kind::kDict:
      return fmt::format("a dict of {}", items.size() / 2);
    case Kind::kOrderedDict:
      return fmt::format("an OrderedDict of {}", items.size() / 2);
    case Kind::kGlobal:
      return std::string(text);
    case Kind::kStorage:
      return "a storage";
    case Kind::kTensor:
      return "a tensor";
  }
  return "?";
}

std::vector<PickledTensor> read_state_dict(std::string_view pickle, const std::string& where) {
  if (pickle.size() > kLargestPickle)
    throw InputError(where, fmt::format("has {} bytes, at most {} are read", pickle.size(), kLargestPickle));
  PickleMachine machine(pickle, where);
  const PickleValue& top = machine.run();
  if (!top.is_dict())
    throw InputError(where, "holds " + top.description() + ", not a dict of tensors", "save model.state_dict()");
  std::vector<PickledTensor> tensors;
  for (size_t i = 0; i < top.items.size(); i += 2) {
    const PickleValue &key = *top.items[i], &value = *top.items[i + 1];
    if (value.kind != PickleValue::Kind::kTensor)
      throw InputError(
          where, fmt::format("'{}' at byte {} is {}, not a tensor", printable(key.text), value.at, value.description()),
          "save model.state_dict()");
    tensors.push_back(*value.tensor);
    tensors.back().name = key.text;
  }
  return tensors;
}

}  // namespace assay

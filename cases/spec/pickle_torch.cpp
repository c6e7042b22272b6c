#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/error.hpp"
#include "cases/spec/pickle_machine.hpp"
#include "cases/spec/printable.hpp"

namespace assay {

namespace {

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";
constexpr size_t kMostDimensions = 64;

struct StorageType {
  std::string_view global;
  DType dtype;
};
constexpr StorageType kStorages[] = {
    {"torch.DoubleStorage", DType::kF64},    {"torch.FloatStorage", DType::kF32}, {"torch.HalfStorage", DType::kF16},
    {"torch.BFloat16Storage", DType::kBF16}, {"torch.LongStorage", DType::kI64},  {"torch.IntStorage", DType::kI32},
    {"torch.ByteStorage", DType::kU8},
};

const StorageType* storage_type(std::string_view global) {
  const auto found = std::find_if(std::begin(kStorages), std::end(kStorages),
                                  [&](const StorageType& row) { return row.global == global; });
  return found == std::end(kStorages) ? nullptr : found;
}

bool is_storage_name(std::string_view name) {
  return name.size() > 14 && name.substr(0, 6) == "torch." && name.substr(name.size() - 7) == "Storage" &&
         name.find('.', 6) == name.npos;
}

}  // namespace

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  const std::string full = std::string(module) + "." + std::string(name);
  const StorageType* storage = storage_type(full);
  PickleValue& value = push(Kind::kGlobal);
  if (storage)
    value.text = storage->global;
  else if (full == kOrderedDict)
    value.text = kOrderedDict;
  else if (full == kRebuildTensor)
    value.text = kRebuildTensor;
  else if (full == kRebuildParameter)
    value.text = kRebuildParameter;
  else if (is_storage_name(full))
    refuse(printable(full) + ": tensors of this dtype cannot be read",
           "read: Double, Float, Half, BFloat16, Long, Int and ByteStorage");
  else
    refuse("global '" + printable(full) + "' is not one that a dict of tensors needs",
           "it is refused, nothing was run");
}

void PickleMachine::reduce() {
  const PickleValue *arguments = pop(), *called = pop();
  if (!called->is(Kind::kGlobal)) refuse("REDUCE calls " + called->description());
  if (!arguments->is(Kind::kTuple))
    refuse(fmt::format("REDUCE calls {} with {}, not a tuple", called->text, arguments->description()));
  if (called->text == kRebuildTensor) return rebuild_tensor(*arguments);
  if (called->text == kRebuildParameter) return rebuild_parameter(*arguments);
  if (called->text != kOrderedDict) refuse(fmt::format("REDUCE calls {}", called->text));
  if (!arguments->items.empty()) refuse("REDUCE calls collections.OrderedDict with arguments");
  push(Kind::kOrderedDict);
}

// torch sets _metadata, the versions of the modules, which change no weight.
void PickleMachine::build() {
  const PickleValue *state = pop(), *object = pop();
  if (!object->is(Kind::kOrderedDict)) refuse("BUILD on " + object->description());
  if (!state->is(Kind::kDict) || state->items.size() != 2 || state->items[0]->text != "_metadata")
    refuse("BUILD of an OrderedDict with another state than _metadata");
  stack_.push_back(const_cast<PickleValue*>(object));
}

// ('storage', torch.FloatStorage, '0', 'cpu', 24): kind, type, key, device, elements.
void PickleMachine::persistent_id() {
  const PickleValue* id = pop();
  if (!id->is(Kind::kTuple) || id->items.size() != 5 || !id->items[0]->is(Kind::kText) ||
      id->items[0]->text != "storage")
    refuse("BINPERSID of " + id->description() + ", not of ('storage', type, key, device, elements)");
  const PickleValue &type = *id->items[1], &key = *id->items[2], &device = *id->items[3], &count = *id->items[4];
  const StorageType* row = type.is(Kind::kGlobal) ? storage_type(type.text) : nullptr;
  if (!row) refuse("BINPERSID with " + type.description() + " for a storage type");
  const bool is_number = key.is(Kind::kText) && !key.text.empty() && key.text.size() <= 20 &&
                         std::all_of(key.text.begin(), key.text.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number) refuse("BINPERSID with " + key.description() + " for a storage's key, which is a number");
  if (!device.is(Kind::kText) || device.text == "meta")
    refuse("BINPERSID of a storage on " + device.description() + ", which holds no values");
  if (!count.is(Kind::kInt) || count.number < 0)
    refuse("BINPERSID with " + count.description() + " for a storage's elements");
  PickleValue& storage = push(Kind::kStorage);
  storage.tensor = std::make_unique<PickledTensor>();
  storage.tensor->dtype = row->dtype;
  storage.tensor->storage = key.text;
  storage.tensor->storage_count = count.number;
}

Shape PickleMachine::whole_numbers(const PickleValue& tuple, const char* what) const {
  if (!tuple.is(Kind::kTuple)) refuse(fmt::format("a tensor's {} are {}", what, tuple.description()));
  if (tuple.items.size() > kMostDimensions)
    refuse(fmt::format("a tensor's {} are {}: more than {} dimensions", what, tuple.description(), kMostDimensions));
  Shape numbers;
  for (const PickleValue* item : tuple.items) {
    if (!item->is(Kind::kInt)) refuse(fmt::format("one of a tensor's {} is {}", what, item->description()));
    if (item->number < 0) refuse(fmt::format("one of a tensor's {} is negative, {}", what, item->number));
    numbers.push_back(item->number);
  }
  return numbers;
}

// (storage, offset, sizes, strides, requires_grad, hooks), and for some a dict of bits that must have none set.
void PickleMachine::rebuild_tensor(const PickleValue& arguments) {
  const auto& given = arguments.items;
  if (given.size() != 6 && given.size() != 7)
    refuse(fmt::format("{} has {} arguments, not 6 or 7", kRebuildTensor, given.size()));
  if (!given[0]->is(Kind::kStorage))
    refuse(fmt::format("{} of {}, not of a storage", kRebuildTensor, given[0]->description()));
  if (!given[1]->is(Kind::kInt) || given[1]->number < 0)
    refuse(fmt::format("a tensor's offset is {}", given[1]->description()));
  if (!given[4]->is(Kind::kBool) || !given[5]->is_dict() || !given[5]->items.empty() ||
      (given.size() == 7 && (!given[6]->is_dict() || !given[6]->items.empty())))
    refuse("a tensor has hooks or a negative or conjugate bit");
  auto tensor = std::make_unique<PickledTensor>(*given[0]->tensor);
  tensor->offset = given[1]->number;
  tensor->shape = whole_numbers(*given[2], "sizes");
  tensor->strides = whole_numbers(*given[3], "strides");
  if (tensor->shape.size() != tensor->strides.size())
    refuse(fmt::format("a tensor has {} sizes and {} strides", tensor->shape.size(), tensor->strides.size()));
  push(Kind::kTensor).tensor = std::move(tensor);
}

// (tensor, requires_grad, hooks): the tensor itself.
void PickleMachine::rebuild_parameter(const PickleValue& arguments) {
  const auto& given = arguments.items;
  if (given.size() != 3 || !given[0]->is(Kind::kTensor) || !given[1]->is(Kind::kBool) || !given[2]->is_dict() ||
      !given[2]->items.empty())
    refuse(fmt::format("{} of other arguments than (tensor, requires_grad, no hooks)", kRebuildParameter));
  push(Kind::kTensor).tensor = std::make_unique<PickledTensor>(*given[0]->tensor);
}

}  // namespace assay

#include "cases/spec/pickle_machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/error.hpp"
#include "cases/spec/little_endian.hpp"
#include "cases/spec/pickle_opcodes.hpp"
#include "cases/spec/printable.hpp"

namespace assay {

namespace {

constexpr size_t kMostMarks = 1000, kMostOnStack = 100'000, kMostValues = 2'000'000;
constexpr size_t kLongestLine = 256;

}  // namespace

std::string PickleMachine::opcode_name_here() const {
  return opcode_name(static_cast<unsigned char>(pickle_[opcode_at_]));
}

void PickleMachine::refuse(const std::string& problem, const std::string& advice) const {
  throw InputError(fmt::format("{} byte {}", where_, opcode_at_), problem, advice);
}

const PickleValue& PickleMachine::run() {
  if (number(1) != 0x80) refuse("does not begin with PROTO: no pickle of protocol 2 to 5");
  if (const uint64_t protocol = number(1); protocol < 2 || protocol > 5)
    refuse(fmt::format("is of protocol {}; 2 to 5 are read", protocol));
  while (true) {
    opcode_at_ = at_;
    if (at_ == pickle_.size()) refuse("ends without STOP: it was cut short");
    const auto opcode = static_cast<unsigned char>(pickle_[at_++]);
    if (opcode == '.') break;
    step(opcode);
  }
  if (!marks_.empty()) refuse("STOP inside of a MARK");
  if (stack_.size() != 1) refuse(fmt::format("STOP with {} items on the stack instead of one", stack_.size()));
  if (at_ != pickle_.size()) refuse(fmt::format("STOP with {} bytes behind it", pickle_.size() - at_));
  return *stack_.back();
}

void PickleMachine::step(unsigned char opcode) {
  switch (opcode) {
    case '(':
      if (marks_.size() == kMostMarks) refuse(fmt::format("MARK nested deeper than {}", kMostMarks));
      return marks_.push_back(stack_.size());
    case 0x95:
      if (const uint64_t bytes = number(8); bytes > pickle_.size() - at_)
        refuse(fmt::format("FRAME of {} bytes, {} are left", bytes, pickle_.size() - at_));
      return;
    case 'N':
      push(Kind::kNone);
      return;
    case 0x88:
      push(Kind::kBool).number = 1;
      return;
    case 0x89:
      push(Kind::kBool);
      return;
    case 'J':
      return push_int(static_cast<int32_t>(number(4)));
    case 'K':
      return push_int(static_cast<int64_t>(number(1)));
    case 'M':
      return push_int(static_cast<int64_t>(number(2)));
    case 0x8a:
      return push_int(long1());
    case 'G':
      take(8);
      push(Kind::kFloat);
      return;  // no float means anything here
    case 'X':
      return push_text(number(4));
    case 0x8c:
      return push_text(number(1));
    case ')':
      push(Kind::kTuple);
      return;
    case 't':
      return tuple_of(pop_to_mark());
    case 0x85:
      return push_tuple(1);
    case 0x86:
      return push_tuple(2);
    case 0x87:
      return push_tuple(3);
    case ']':
      push(Kind::kList);
      return;
    case 'a': {
      const PickleValue* item = pop();
      return top_container(false).items.push_back(item);
    }
    case 'e': {
      const auto items = pop_to_mark();
      auto& list = top_container(false).items;
      list.insert(list.end(), items.begin(), items.end());
      return;
    }
    case '}':
      push(Kind::kDict);
      return;
    case 's': {
      const PickleValue* value = pop();
      const PickleValue* key = pop();
      return set_items(top_container(true), {key, value});
    }
    case 'u': {
      const auto items = pop_to_mark();
      return set_items(top_container(true), items);
    }
    case 'q':
      return put(number(1));
    case 'r':
      return put(number(4));
    case 0x94:
      return put(memo_.size());
    case 'h':
      return get(number(1));
    case 'j':
      return get(number(4));
    case 'c': {
      const std::string_view module = line();
      return push_global(module, line());
    }
    case 0x93: {
      const PickleValue *name = pop(), *module = pop();
      if (!name->is(Kind::kText) || !module->is(Kind::kText)) refuse("STACK_GLOBAL of what is no string");
      return push_global(module->text, name->text);
    }
    case 'R':
      return reduce();
    case 'b':
      return build();
    case 'Q':
      return persistent_id();
    default:
      refuse(opcode_name(opcode) + " is not an opcode that a dict of tensors needs", "it is refused, nothing was run");
  }
}

std::string_view PickleMachine::take(uint64_t bytes) {
  if (bytes > pickle_.size() - at_)
    refuse(fmt::format("{} wants {} bytes, {} are left", opcode_name_here(), bytes, pickle_.size() - at_));
  const std::string_view taken = pickle_.substr(at_, bytes);
  at_ += bytes;
  return taken;
}

uint64_t PickleMachine::number(size_t width) {
  if (pickle_.size() - at_ < width) refuse("ends within an opcode: it was cut short");
  const uint64_t value = little_endian(pickle_, at_, width);
  at_ += width;
  return value;
}

std::string_view PickleMachine::line() {
  const size_t end = pickle_.substr(at_, kLongestLine + 1).find('\n');
  if (end == std::string_view::npos) refuse(fmt::format("GLOBAL without a name of at most {} bytes", kLongestLine));
  const std::string_view text = pickle_.substr(at_, end);
  at_ += end + 1;
  return text;
}

int64_t PickleMachine::long1() {
  const uint64_t bytes = number(1);
  if (bytes > 8) refuse(fmt::format("LONG1 of {} bytes: no number here is beyond 64 bits", bytes));
  const std::string_view digits = take(bytes);
  if (bytes == 0) return 0;
  uint64_t value = little_endian(digits, 0, bytes);
  if (bytes < 8 && (digits.back() & 0x80)) value |= ~uint64_t{0} << (8 * bytes);  // two's complement
  return static_cast<int64_t>(value);
}

PickleValue& PickleMachine::push(Kind kind) {
  if (values_.size() == kMostValues) refuse(fmt::format("holds more than {} values", kMostValues));
  PickleValue& value = values_.emplace_back();
  value.kind = kind;
  value.at = opcode_at_;
  push_existing(&value);
  return value;
}

void PickleMachine::push_existing(PickleValue* value) {
  if (stack_.size() == kMostOnStack) refuse(fmt::format("puts more than {} items on the stack", kMostOnStack));
  stack_.push_back(value);
}

PickleValue* PickleMachine::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) refuse(opcode_name_here() + " finds nothing on the stack");
  PickleValue* value = stack_.back();
  stack_.pop_back();
  return value;
}

std::vector<const PickleValue*> PickleMachine::pop_to_mark() {
  if (marks_.empty()) refuse(opcode_name_here() + " without a MARK");
  std::vector<const PickleValue*> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

PickleValue& PickleMachine::top_container(bool is_dict) {
  PickleValue* value = pop();
  if (is_dict ? !value->is_dict() : !value->is(Kind::kList)) refuse(opcode_name_here() + " on " + value->description());
  stack_.push_back(value);
  return *value;
}

void PickleMachine::push_text(uint64_t bytes) { push(Kind::kText).text = take(bytes); }
void PickleMachine::push_int(int64_t value) { push(Kind::kInt).number = value; }

void PickleMachine::push_tuple(size_t count) {
  std::vector<const PickleValue*> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  tuple_of(std::move(items));
}

void PickleMachine::tuple_of(std::vector<const PickleValue*> items) { push(Kind::kTuple).items = std::move(items); }

void PickleMachine::set_items(PickleValue& dict, const std::vector<const PickleValue*>& items) {
  if (items.size() % 2 != 0) refuse("SETITEMS with a key that has no value");
  for (size_t i = 0; i < items.size(); i += 2) {
    const PickleValue& key = *items[i];
    if (!key.is(Kind::kText)) refuse("a key is " + key.description() + ", not a string");
    if (!is_printable_utf8(key.text)) refuse("key '" + printable(key.text) + "' is no plain UTF-8 text");
    if (!dict.keys.insert(key.text).second) refuse("key '" + printable(key.text) + "' is set twice");
    dict.items.push_back(&key);
    dict.items.push_back(items[i + 1]);
  }
}

void PickleMachine::put(uint64_t slot) {
  PickleValue* value = pop();
  stack_.push_back(value);
  memo_[slot] = value;
}

void PickleMachine::get(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) refuse(fmt::format("memo {} is read and was never written", slot));
  push_existing(found->second);
}

}  // namespace assay

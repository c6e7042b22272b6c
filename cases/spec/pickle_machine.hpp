// The stack machine behind read_state_dict (pickle.hpp). Values live as long as the machine; containers point at them,
// so that a value that holds itself costs nothing, and nothing here recurses into values.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cases/spec/pickle.hpp"

namespace assay {

struct PickleValue {
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kTuple, kList, kDict, kOrderedDict, kGlobal, kStorage, kTensor };

  Kind kind = Kind::kNone;
  uint64_t at = 0;                            // the byte of the opcode that made it
  int64_t number = 0;                         // of a bool or int
  std::string_view text;                      // into the pickle, or the global's name
  std::vector<const PickleValue*> items;      // of a dict: key, value, key, value, ...
  std::unordered_set<std::string_view> keys;  // of a dict
  std::unique_ptr<PickledTensor> tensor;      // of a storage too: dtype, storage, storage_count

  bool is_dict() const { return kind == Kind::kDict || kind == Kind::kOrderedDict; }
  bool is(Kind wanted) const { return kind == wanted; }
  std::string description() const;  // "a list of 3", "a tensor"
};

class PickleMachine {
 public:
  PickleMachine(std::string_view pickle, std::string where) : pickle_(pickle), where_(std::move(where)) {}
  // What stands on the stack at STOP. Once.
  const PickleValue& run();

 private:
  using Kind = PickleValue::Kind;

  // Reading.
  std::string_view take(uint64_t bytes);
  uint64_t number(size_t width);
  std::string_view line();
  int64_t long1();
  [[noreturn]] void refuse(const std::string& problem, const std::string& advice = "") const;

  std::string opcode_name_here() const;

  // The stack. A mark is a position; what stands below it cannot be popped.
  PickleValue& push(Kind kind);
  void push_existing(PickleValue* value);
  PickleValue* pop();
  std::vector<const PickleValue*> pop_to_mark();
  PickleValue& top_container(bool is_dict);

  void step(unsigned char opcode);
  void push_text(uint64_t bytes);
  void push_int(int64_t value);
  void push_tuple(size_t count);
  void tuple_of(std::vector<const PickleValue*> items);
  void set_items(PickleValue& dict, const std::vector<const PickleValue*>& items);
  void put(uint64_t slot);
  void get(uint64_t slot);

  // What torch's names mean (pickle_torch.cpp).
  void push_global(std::string_view module, std::string_view name);
  void reduce();
  void build();
  void persistent_id();
  void rebuild_tensor(const PickleValue& arguments);
  void rebuild_parameter(const PickleValue& arguments);
  Shape whole_numbers(const PickleValue& tuple, const char* what) const;

  std::string_view pickle_;
  std::string where_;
  uint64_t at_ = 0, opcode_at_ = 0;
  std::deque<PickleValue> values_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

}  // namespace assay

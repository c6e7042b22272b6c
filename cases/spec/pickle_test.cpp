#include "cases/spec/pickle.hpp"

#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "cases/spec/testing/torch_bytes.hpp"

namespace assay {
namespace {

using namespace testing;

std::string refusal(const std::string& bytes) {
  try {
    read_state_dict(bytes, "w.bin data.pkl");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// `where` is the byte that the message must name.
void expect_refused(const std::string& bytes, size_t where, const std::string& part) {
  const std::string got = refusal(bytes);
  const std::string wanted = "w.bin data.pkl byte " + std::to_string(where) + ": ";
  EXPECT_EQ(got.substr(0, wanted.size()), wanted) << part << "\n gave: " << got;
  EXPECT_NE(got.find(part), std::string::npos) << part << "\n gave: " << got;
}

const std::string kGood = tensor(storage("0", 6), 1, {2, 2}, {3, 1});

TEST(Pickle, ATensorIsWhatItsArgumentsSay) {
  const auto tensors = read_state_dict(pickle(dict({{"b.weight", kGood}, {"a", parameter(kGood)}})), "x");
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "b.weight");  // the dict's order
  EXPECT_EQ(tensors[1].name, "a");
  for (const PickledTensor& read : tensors) {
    EXPECT_EQ(read.dtype, DType::kF32);
    EXPECT_EQ(read.storage, "0");
    EXPECT_EQ(read.storage_count, 6);
    EXPECT_EQ(read.offset, 1);
    EXPECT_EQ(read.shape, (Shape{2, 2}));
    EXPECT_EQ(read.strides, (std::vector<int64_t>{3, 1}));
  }
  EXPECT_TRUE(read_state_dict(pickle("}"), "x").empty());
}

TEST(Pickle, EveryDtypeHasItsStorage) {
  const std::pair<const char*, DType> kAll[] = {{"DoubleStorage", DType::kF64}, {"FloatStorage", DType::kF32},
                                                {"HalfStorage", DType::kF16},   {"BFloat16Storage", DType::kBF16},
                                                {"LongStorage", DType::kI64},   {"IntStorage", DType::kI32},
                                                {"ByteStorage", DType::kU8}};
  for (const auto& [name, dtype] : kAll) {
    const auto read = read_state_dict(pickle(dict({{"a", tensor(storage("7", 3, name), 0, {3}, {1})}})), "x");
    EXPECT_EQ(read.at(0).dtype, dtype) << name;
    EXPECT_EQ(read.at(0).storage, "7");
  }
}

// What module.state_dict() gives: an OrderedDict with its names in the memo, and _metadata set by BUILD.
TEST(Pickle, AnOrderedDictWithMetadata) {
  const std::string body = no_hooks() + "q\1(" + text("a") + kGood + "r" + bytes_of(700, 4) + text("b") + "j" +
                           bytes_of(700, 4) + "u}" + text("_metadata") + no_hooks() + text("") + "}" + text("version") +
                           "K\1sss" + "b";
  const auto read = read_state_dict(pickle(body), "x");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[1].name, "b");
  EXPECT_EQ(read[1].shape, (Shape{2, 2}));
}

// The forms of protocols 4 and 5: frames, short strings, names from the stack, a memo that counts by itself.
TEST(Pickle, LaterProtocols) {
  const std::string memoize = "\x94";
  const auto word = [&](const std::string& value) {
    return std::string("\x8c").append(bytes_of(value.size(), 1)) + value + memoize;
  };
  const auto name = [&](const std::string& module, const std::string& last) {
    return word(module) + word(last) + "\x93" + memoize;
  };
  const auto small = [](int value) { return std::string("K").append(bytes_of(static_cast<uint64_t>(value), 1)); };
  const auto recall = [](int slot) { return std::string("h").append(bytes_of(static_cast<uint64_t>(slot), 1)); };
  const std::string tail = small(1) + small(3) + "\x85" + memoize + small(1) + "\x85" + memoize + "\x89";
  // Slots: 0, 1 'a' and the module, 2 name, 3 _rebuild_tensor_v2; 4 'storage'; 5, 6, 7 HalfStorage.
  const std::string first = word("a") + name("torch._utils", "_rebuild_tensor_v2") + "((" + word("storage") +
                            name("torch", "HalfStorage") + word("0") + word("cpu") + small(4) + "t" + memoize + "Q" +
                            tail + name("collections", "OrderedDict") + ")R" + memoize + "t" + memoize + "R" + memoize;
  const std::string second = word("b") + recall(3) + "((" + recall(4) + recall(7) + word("1") + word("cpu") + small(4) +
                             "tQ" + tail + name("collections", "OrderedDict") + ")RtR";
  const std::string body = "}(" + first + second + "u.";
  for (const char* protocol : {"\4", "\5"}) {
    const auto read = read_state_dict("\x80" + (protocol + ("\x95" + bytes_of(body.size(), 8))) + body, "x");
    ASSERT_EQ(read.size(), 2u);
    EXPECT_EQ(read[1].name, "b");
    EXPECT_EQ(read[1].storage, "1");
    for (const PickledTensor& tensor : read) {
      EXPECT_EQ(tensor.dtype, DType::kF16);
      EXPECT_EQ(tensor.storage_count, 4);
      EXPECT_EQ(tensor.offset, 1);
      EXPECT_EQ(tensor.shape, Shape{3});
    }
  }
}

// Programs: whatever a pickle can do beyond naming tensors.
TEST(Pickle, NothingIsCalled) {
  const std::string command = text("touch /pwned"), system = global("os", "system");
  const std::string opcode = " is not an opcode that a dict of tensors needs";
  expect_refused(pickle(system + tuple({command}) + "R"), 2, "global 'os.system' is not one");
  expect_refused(pickle(text("os") + text("system") + "\x93" + tuple({command}) + "R"), 20, "global 'os.system'");
  expect_refused(pickle(text("builtins") + text("eval") + "\x93"), 24, "global 'builtins.eval'");
  expect_refused(pickle("(" + command + "ios\nsystem\n"), 20, "INST" + opcode);
  expect_refused(pickle("(" + global("collections", "OrderedDict") + "o"), 28, "OBJ" + opcode);
  expect_refused(pickle(global("collections", "OrderedDict") + ")\x81"), 28, "NEWOBJ" + opcode);
  expect_refused(pickle(global("collections", "OrderedDict") + ")}\x92"), 29, "NEWOBJ_EX" + opcode);
  expect_refused(pickle("\x82\1"), 2, "EXT1" + opcode);
  expect_refused(pickle("\x83\1\1"), 2, "EXT2" + opcode);
  expect_refused(pickle("\x84\1\1\1\1"), 2, "EXT4" + opcode);
  expect_refused(pickle("Pfile:///etc/passwd\n"), 2, "PERSID" + opcode);
  expect_refused(pickle("\x97"), 2, "NEXT_BUFFER" + opcode);
  expect_refused(pickle("}\xff"), 3, "0xff" + opcode);
  // Names that nearly are on the list.
  expect_refused(pickle(global("torch._utils", "_rebuild_tensor_v2.__globals__")), 2, "global 'torch._utils._rebuild_");
  expect_refused(pickle(global("collections", "Ordered\x1b[2JDict")), 2, R"(global 'collections.Ordered\x1b[2JDict')");
  expect_refused(pickle(global("torch.hub", "load")), 2, "global 'torch.hub.load'");
  expect_refused(pickle(global("torch.storage", "_load_from_bytes")), 2, "global 'torch.storage._load_from_bytes'");
  expect_refused(pickle(global("torch", "BoolStorage")), 2, "torch.BoolStorage: tensors of this dtype");
  // Names on the list, used otherwise.
  const size_t after_type = 2 + global("torch", "FloatStorage").size();
  expect_refused(pickle(global("torch", "FloatStorage") + ")R"), after_type + 1, "REDUCE calls torch.FloatStorage");
  expect_refused(pickle(text("os.system") + ")R"), 17, "REDUCE calls the string 'os.system'");
  expect_refused(pickle(global("collections", "OrderedDict") + "]R"), 28, "with a list of 0, not a tuple");
  expect_refused(pickle(global("collections", "OrderedDict") + tuple({"]"}) + "R"), 30, "OrderedDict with arguments");
  expect_refused(pickle(global("torch._utils", "_rebuild_tensor_v2") + ")R"), 36, "has 0 arguments, not 6 or 7");
  expect_refused(pickle(global("torch._utils", "_rebuild_parameter") + tuple({system}) + "R"), 36, "'os.system'");
  // BUILD sets attributes, of whatever it is given.
  expect_refused(pickle(global("collections", "OrderedDict") + "}b"), 28, "BUILD on collections.OrderedDict");
  expect_refused(pickle(kGood + "}" + text("__class__") + text("x") + "sb"), 2 + kGood.size() + 1 + 14 + 6 + 1,
                 "BUILD on a tensor");
  expect_refused(pickle(no_hooks() + "}" + text("__reduce__") + text("x") + "sb"), 2 + 27 + 1 + 15 + 6 + 1,
                 "another state than _metadata");
  expect_refused(pickle(no_hooks() + "Nb"), 30, "another state than _metadata");
  expect_refused(pickle("}}b"), 4, "BUILD on a dict of 0");
}

TEST(Pickle, AStackAndAMemoThatDoNotHold) {
  expect_refused("", 0, "ends within an opcode");
  expect_refused("\x80", 0, "ends within an opcode");
  expect_refused("}.", 0, "does not begin with PROTO");
  expect_refused("\x80\1}.", 0, "protocol 1");
  expect_refused("\x80\6}.", 0, "protocol 6");
  expect_refused("\x80\2}", 3, "ends without STOP");
  expect_refused(pickle(""), 2, "STOP with 0 items");
  expect_refused(pickle("}}"), 4, "STOP with 2 items");
  expect_refused(pickle("}") + "tail", 3, "STOP with 4 bytes behind it");
  expect_refused(pickle("}("), 4, "STOP inside of a MARK");
  expect_refused(pickle("u"), 2, "SETITEMS without a MARK");
  expect_refused(pickle("(u"), 3, "SETITEMS finds nothing");
  expect_refused(pickle("}(" + text("a") + "s"), 10, "SETITEM finds nothing");  // not below the mark
  expect_refused(pickle("R"), 2, "REDUCE finds nothing");
  expect_refused(pickle("}(" + text("a") + "u"), 10, "no value");
  expect_refused(pickle("](" + text("a") + text("b") + "u"), 16, "SETITEMS on a list of 0");
  expect_refused(pickle("}Na"), 4, "APPEND on a dict of 0");
  expect_refused(pickle("h\7"), 2, "memo 7 is read and was never written");
  expect_refused(pickle("j" + bytes_of(0xffffffff, 4)), 2, "memo 4294967295 is read");
  expect_refused(pickle("q\1"), 2, "BINPUT finds nothing");
  expect_refused(pickle("NN\x93"), 4, "STACK_GLOBAL of what is no string");
}

TEST(Pickle, SizesThatLie) {
  expect_refused(pickle("X" + bytes_of(0xfffffff0, 4) + "abc"), 2, "BINUNICODE wants 4294967280 bytes, 4 are left");
  expect_refused(pickle("\x8d" + bytes_of(1ull << 62, 8) + "abc"), 2, "BINUNICODE8 is not an opcode");
  expect_refused(pickle("\x8c\xc8"
                        "abc"),
                 2, "SHORT_BINUNICODE wants 200 bytes, 4 are left");
  expect_refused(pickle("\x8b" + bytes_of(0x7fffffff, 4)), 2, "LONG4 is not an opcode");
  expect_refused(pickle("\x8a\xff"), 2, "LONG1 of 255 bytes");
  expect_refused(pickle("\x8a\x09"
                        "123456789"),
                 2, "LONG1 of 9 bytes");
  expect_refused(
      "\x80\2\x8a\x08"
      "1234",
      2, "LONG1 wants 8 bytes, 4 are left");
  expect_refused(pickle("\x95" + bytes_of(UINT64_MAX, 8) + "}"), 2, "FRAME of 18446744073709551615 bytes, 2 are left");
  expect_refused("\x80\2\x95\1\1", 2, "ends within an opcode");
  expect_refused(pickle("c" + std::string(100'000, 'a')), 2, "GLOBAL without a name of at most 256 bytes");
  expect_refused(
      "\x80\2"
      "cos",
      2, "GLOBAL without a name");
}

// Each ends at a limit, at once, and in the memory that the limit allows.
TEST(Pickle, Bombs) {
  expect_refused(pickle(std::string(100'000, '(')), 1002, "MARK nested deeper than 1000");
  expect_refused(pickle(std::string(200'000, ']')), 100'002, "more than 100000 items on the stack");
  std::string many = "]";  // two million empty tuples appended to a list
  for (int i = 0; i < 2'000'000; ++i) many += ")a";
  expect_refused(pickle(many), 2 + 1 + 2 * 1'999'999, "more than 2000000 values");
  // Lists of ten times the list before, forty deep: 10^40 elements for one who walks them.
  std::string laughs = std::string("]q") + '\0';
  for (uint64_t level = 1; level < 40; ++level) {
    laughs += "](";
    for (int i = 0; i < 10; ++i) laughs.append("h").append(bytes_of(level - 1, 1));
    laughs.append("eq").append(bytes_of(level, 1));
  }
  EXPECT_NE(refusal(pickle(dict({{"a", "(" + laughs + "t"}}))).find("is a tuple of 40"), std::string::npos);
  EXPECT_NE(refusal(pickle("}" + text("a") + "]q\1h\1as")).find("'a' at byte"), std::string::npos);  // holds itself
  EXPECT_NE(refusal(std::string(kLargestPickle + 1, '(')).find("at most 67108864 are read"), std::string::npos);
}

TEST(Pickle, WhatIsNoDictOfTensors) {
  EXPECT_NE(refusal(pickle("]")).find("holds a list of 0, not a dict of tensors"), std::string::npos);
  EXPECT_NE(refusal(pickle(kGood)).find("holds a tensor, not a dict"), std::string::npos);
  EXPECT_NE(refusal(pickle(dict({{"model", dict({{"a", kGood}})}}))).find("'model' at byte 14 is a dict of 1"),
            std::string::npos);
  EXPECT_NE(refusal(pickle(dict({{"epoch", number(3)}}))).find("'epoch' at byte 14 is the number 3"),
            std::string::npos);
  expect_refused(pickle("}(" + number(1) + kGood + "u"), 2 + 2 + 10 + kGood.size(), "a key is the number 1");
  expect_refused(pickle("}(N" + kGood + "u"), 2 + 3 + kGood.size(), "a key is None");
  expect_refused(pickle("}(" + text("a") + "N" + text("a") + "Nu"), 18, "key 'a' is set twice");
  expect_refused(pickle("}" + text("a") + "Ns" + text("a") + "Ns"), 18, "key 'a' is set twice");
  expect_refused(pickle("}" + text("a\nb") + "Ns"), 12, R"(key 'a\x0ab')");
  expect_refused(pickle("}" + text("a\xc0\x80") + "Ns"), 12, R"(key 'a\xc0\x80' is no plain UTF-8)");
}

TEST(Pickle, TensorsThatCannotBe) {
  const auto refused = [](const std::string& value, const std::string& part) {
    const std::string got = refusal(pickle(dict({{"a", value}})));
    EXPECT_NE(got.find(part), std::string::npos) << part << "\n gave: " << got;
    EXPECT_EQ(got.find("w.bin data.pkl byte "), 0u) << got;
  };
  refused(tensor(storage("0", 6), 0, {2, -3}, {3, 1}), "one of a tensor's sizes is negative, -3");
  refused(tensor(storage("0", 6), 0, {2, 3}, {-3, 1}), "one of a tensor's strides is negative, -3");
  refused(tensor(storage("0", 6), -1, {2, 3}, {3, 1}), "a tensor's offset is the number -1");
  refused(tensor(storage("0", 6), 0, {2, 3}, {1}), "2 sizes and 1 strides");
  refused(tensor(storage("0", 6), 0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)), "64 dimensions");
  refused(tensor("N", 0, {2}, {1}), "of None, not of a storage");
  refused(tensor(storage("0", -6), 0, {2}, {1}), "the number -6 for a storage's elements");
  refused(tensor(storage("../0", 6), 0, {2}, {1}), "the string '../0' for a storage's key");
  refused(tensor(storage("", 6), 0, {2}, {1}), "the string '' for a storage's key");
  refused(tensor(storage("0", 6, "FloatStorage", "meta"), 0, {2}, {1}), "which holds no values");
  refused(tensor(text("0") + "Q", 0, {2}, {1}), "BINPERSID of the string '0'");
  refused(tensor(tuple({text("module"), "N", "N", "N", "N"}) + "Q", 0, {2}, {1}), "BINPERSID of a tuple of 5");
  refused(tensor(tuple({text("storage"), "N", text("0"), text("cpu"), number(1)}) + "Q", 0, {}, {}),
          "None for a storage type");
  refused(parameter("N"), "_rebuild_parameter of other arguments");
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");
  refused(rebuild + tuple({storage("0", 1), number(0), "N", numbers({}), "\x89", no_hooks()}) + "R", "sizes are None");
  refused(rebuild + tuple({storage("0", 1), number(0), tuple({"\x88"}), numbers({1}), "\x89", no_hooks()}) + "R",
          "one of a tensor's sizes is True");
  refused(rebuild + tuple({storage("0", 1), number(0), numbers({}), numbers({}), "\x89", dict({{"0", "N"}})}) + "R",
          "has hooks");
  refused(
      rebuild +
          tuple({storage("0", 1), number(0), numbers({}), numbers({}), "\x89", no_hooks(), dict({{"conj", "\x88"}})}) +
          "R",
      "conjugate bit");
}

}  // namespace
}  // namespace assay

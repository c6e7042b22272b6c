#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/torch_archive.hpp"
#include "cases/spec/torch_bin.hpp"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::vector<NamedTensor> every_dtype() {
  std::vector<NamedTensor> all = {{"z.weight", HostTensor({2, 3}, std::vector<float>{0, 1, 2, 3, 4, -5})},
                                  {"a", HostTensor({}, std::vector<float>{7})},
                                  {"none", HostTensor(DType::kF32, {0, 4})},
                                  {"i", HostTensor({2}, std::vector<int64_t>{-1, int64_t{1} << 40})}};
  for (const DType dtype : {DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kU8}) {
    HostTensor tensor(dtype, {3});
    for (size_t i = 0; i < tensor.bytes().size(); ++i) tensor.bytes()[i] = static_cast<std::byte>(i + 1);
    all.push_back({"of_" + std::string(dtype_name(dtype)), tensor});
  }
  return all;
}

class TorchBinWrite : public ::testing::Test {
 protected:
  fs::path write(const std::vector<NamedTensor>& tensors) const {
    std::vector<TensorHeader> headers;
    for (const NamedTensor& tensor : tensors)
      headers.push_back({tensor.name, tensor.value.dtype(), tensor.value.shape()});
    size_t at = 0;
    write_torch_bin(folder_ / "w.bin", headers, [&](const TensorHeader&) { return tensors[at++].value; });
    return folder_ / "w.bin";
  }
  // Runs a Python program with the folder as its argument; false where there is no interpreter with torch.
  bool python(const std::string& program) const {
    const char* interpreter = std::getenv("ASSAY_ORIGINALS_PYTHON");
    if (!interpreter || !*interpreter) return false;
    write_file(folder_ / "program.py", program);
    const std::string command = std::string(interpreter) + " " + (folder_ / "program.py").string() + " " +
                                folder_.string() + " >" + (folder_ / "said").string() + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder_ / "said");
    return true;
  }

  const ScratchFolder temporary_;
  const fs::path folder_ = temporary_.path();
};

TEST_F(TorchBinWrite, IsReadBackBitForBit) {
  const auto tensors = every_dtype();
  const auto source = open_torch_bin(write(tensors));
  EXPECT_EQ(source->names().size(), tensors.size());
  for (const NamedTensor& tensor : tensors) {
    const HostTensor read = source->read(tensor.name);
    EXPECT_EQ(read.dtype(), tensor.value.dtype()) << tensor.name;
    EXPECT_EQ(read.shape(), tensor.value.shape()) << tensor.name;
    EXPECT_TRUE(
        std::equal(read.bytes().begin(), read.bytes().end(), tensor.value.bytes().begin(), tensor.value.bytes().end()))
        << tensor.name;
  }
}

TEST_F(TorchBinWrite, StoragesAreAlignedAndCarryTheirChecksum) {
  const auto tensors = every_dtype();
  const TorchArchive archive(write(tensors));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TorchArchive::Entry* entry = archive.find("data/" + std::to_string(i));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->data % 64, 0u);
    EXPECT_EQ(entry->crc == 0, entry->size == 0);
  }
  const std::string bytes = read_file(folder_ / "w.bin");
  write(tensors);
  EXPECT_EQ(read_file(folder_ / "w.bin"), bytes);  // no date, no number of its own
}

// More than one batch of SETITEMS.
TEST_F(TorchBinWrite, ThousandsOfTensors) {
  std::vector<NamedTensor> tensors;
  for (int i = 0; i < 2500; ++i)
    tensors.push_back({"layers." + std::to_string(i), HostTensor({1}, std::vector<float>{static_cast<float>(i)})});
  const auto source = open_torch_bin(write(tensors));
  EXPECT_EQ(source->names().size(), 2500u);
  for (const int i : {0, 999, 1000, 1001, 2499}) EXPECT_EQ(source->read("layers." + std::to_string(i)).at(0), i);
  EXPECT_TRUE(open_torch_bin(write({}))->names().empty());
}

TEST_F(TorchBinWrite, WhatCannotBeWritten) {
  const HostTensor one({1}, std::vector<float>{1});
  EXPECT_THROW(write({{"a", one}, {"a", one}}), InputError);
  EXPECT_THROW(write({{"a\n", one}}), InputError);
  EXPECT_THROW(write_torch_bin(folder_ / "absent" / "w.bin", {}, {}), HarnessError);
  EXPECT_THROW(write_torch_bin(folder_ / "x.bin", {{"a", DType::kF32, {2}}}, [&](const TensorHeader&) { return one; }),
               HarnessError);
  EXPECT_FALSE(fs::exists(folder_ / "x.bin"));
}

// torch itself, where it is: what it loads of ours, mapped and not, with nothing but weights allowed.
TEST_F(TorchBinWrite, TorchLoadsIt) {
  write(every_dtype());
  if (!python(R"(
import sys, torch
for mapped in (False, True):
    d = torch.load(sys.argv[1] + '/w.bin', weights_only=True, mmap=mapped)
    assert list(d) == ['z.weight', 'a', 'none', 'i', 'of_float64', 'of_float16', 'of_bfloat16', 'of_int32', 'of_uint8'], list(d)
    assert torch.equal(d['z.weight'], torch.tensor([[0., 1, 2], [3, 4, -5]]))
    assert torch.equal(d['a'], torch.tensor(7.))
    assert d['none'].shape == (0, 4) and d['none'].dtype == torch.float32
    assert torch.equal(d['i'], torch.tensor([-1, 2**40]))
    for name, dtype in (('float64', torch.float64), ('float16', torch.float16), ('bfloat16', torch.bfloat16),
                        ('int32', torch.int32), ('uint8', torch.uint8)):
        t = d['of_' + name]
        assert t.dtype == dtype, (t.dtype, name)
        assert t.view(torch.uint8).tolist() == list(range(1, 3 * t.element_size() + 1)), name
import zipfile
assert zipfile.ZipFile(sys.argv[1] + '/w.bin').testzip() is None
)"))
    GTEST_SKIP() << "ASSAY_ORIGINALS_PYTHON names no interpreter";
}

// And what it saves, in every protocol, with and without checksums: views, transposes, parameters, a module's own dict.
TEST_F(TorchBinWrite, WhatTorchSavesIsRead) {
  if (!python(R"(
import sys, torch
base = torch.arange(24.).reshape(2, 3, 4)
d = {'base': base, 'row': base[1], 'turned': base.permute(2, 0, 1), 'every': base[:, 1:, ::2], 'last': base[1, 2, 3],
     'half': base.half(), 'brain': base.bfloat16().transpose(0, 2), 'none': torch.empty(0, 3),
     'parameter': torch.nn.Parameter(base[0].clone()), 'whole': torch.arange(5), 'bytes': torch.arange(5, dtype=torch.uint8)}
for protocol in (2, 3, 4, 5):
    torch.save(d, f'{sys.argv[1]}/p{protocol}.bin', pickle_protocol=protocol)
torch.serialization.set_crc32_options(False)
torch.save(d, sys.argv[1] + '/p6.bin')
torch.serialization.set_crc32_options(True)
m = torch.nn.Linear(4, 3)
with torch.no_grad():
    m.weight.copy_(base[0])
    m.bias.copy_(torch.arange(3.))
torch.save(m.state_dict(), sys.argv[1] + '/module.bin')
torch.save({'negative': torch._neg_view(torch.ones(2))}, sys.argv[1] + '/negative.bin')
torch.save({'wide': torch.zeros(1).expand(4)}, sys.argv[1] + '/expanded.bin')
torch.save({'mask': torch.ones(2, dtype=torch.bool)}, sys.argv[1] + '/bool.bin')
torch.save(d, sys.argv[1] + '/legacy.bin', _use_new_zipfile_serialization=False)
torch.save(m, sys.argv[1] + '/program.bin')
torch.jit.save(torch.jit.script(m), sys.argv[1] + '/script.bin')
)"))
    GTEST_SKIP() << "ASSAY_ORIGINALS_PYTHON names no interpreter";
  const auto expect = [](const WeightSource& source, const std::string& name, const Shape& shape,
                         const std::vector<double>& values) {
    const HostTensor read = source.read(name);
    EXPECT_EQ(read.shape(), shape) << name;
    ASSERT_EQ(static_cast<size_t>(read.count()), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(read.at(static_cast<int64_t>(i)), values[i]) << name << i;
  };
  std::vector<double> all, turned, brain;
  for (int i = 0; i < 24; ++i) all.push_back(i);
  for (int c = 0; c < 4; ++c)
    for (int ab = 0; ab < 6; ++ab) turned.push_back(ab * 4 + c);
  for (int c = 0; c < 4; ++c)
    for (int b = 0; b < 3; ++b)
      for (int a = 0; a < 2; ++a) brain.push_back(a * 12 + b * 4 + c);
  const std::vector<double> twelve(all.begin(), all.begin() + 12);
  for (const char* file : {"p2.bin", "p3.bin", "p4.bin", "p5.bin", "p6.bin"}) {
    const auto source = open_torch_bin(folder_ / file);
    EXPECT_EQ(source->names().size(), 11u) << file;
    expect(*source, "base", {2, 3, 4}, all);
    expect(*source, "row", {3, 4}, {all.begin() + 12, all.end()});
    expect(*source, "turned", {4, 2, 3}, turned);
    expect(*source, "every", {2, 2, 2}, {4, 6, 8, 10, 16, 18, 20, 22});
    expect(*source, "last", {}, {23});
    expect(*source, "half", {2, 3, 4}, all);
    expect(*source, "brain", {4, 3, 2}, brain);
    expect(*source, "none", {0, 3}, {});
    expect(*source, "parameter", {3, 4}, twelve);
    expect(*source, "whole", {5}, {0, 1, 2, 3, 4});
    expect(*source, "bytes", {5}, {0, 1, 2, 3, 4});
    EXPECT_EQ(source->header("half").dtype, DType::kF16);
    EXPECT_EQ(source->header("brain").dtype, DType::kBF16);
  }
  const auto module = open_torch_bin(folder_ / "module.bin");
  expect(*module, "weight", {3, 4}, twelve);
  expect(*module, "bias", {3}, {0, 1, 2});

  const std::pair<const char*, const char*> kRefused[] = {
      {"expanded.bin", "tensor 'wide': shape [4] with strides [0]"},
      {"negative.bin", "a tensor has hooks or a negative or conjugate bit"},
      {"bool.bin", "torch.BoolStorage: tensors of this dtype cannot be read"},
      {"legacy.bin", "torch's format before 1.6"},
      {"program.bin", "global 'torch.nn.modules.linear.Linear' is not one"},
      {"script.bin", "is a TorchScript archive"}};
  for (const auto& [file, part] : kRefused) try {
      open_torch_bin(folder_ / file);
      ADD_FAILURE() << file << " was opened";
    } catch (const InputError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(file), std::string::npos) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace assay

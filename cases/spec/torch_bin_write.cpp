#include <fmt/format.h>

#include <set>

#include "cases/spec/crc32.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/little_endian.hpp"
#include "cases/spec/printable.hpp"
#include "cases/spec/torch_bin.hpp"

namespace assay {

namespace {

constexpr uint64_t kAlignment = 64;
constexpr size_t kBatch = 1000;                         // tensors between MARK and SETITEMS, as Python's pickler has it
constexpr uint64_t kLocalBytes = 30, kZip64Bytes = 20;  // of a local header, and of its zip64 field: id, size, 2 values
constexpr uint64_t kVersion = 45;                       // zip64
constexpr uint64_t kFlags = 0x808;                      // names are UTF-8; checksum and sizes stand behind the data
constexpr uint64_t kDate = 0x0021;                      // 1980-01-01: the same weights are the same bytes
constexpr uint64_t kFull32 = 0xffffffff, kFull16 = 0xffff;

const char* storage_name(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "DoubleStorage";
    case DType::kF32:
      return "FloatStorage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kBF16:
      return "BFloat16Storage";
    case DType::kI64:
      return "LongStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kU8:
      return "ByteStorage";
  }
  return "";
}

void append_text(std::string& pickle, const std::string& text) {
  pickle += 'X';
  append_little_endian(pickle, text.size(), 4);
  pickle += text;
}

void append_int(std::string& pickle, int64_t value) {
  if (value >= 0 && value <= INT32_MAX) {
    pickle += 'J';
    append_little_endian(pickle, static_cast<uint64_t>(value), 4);
  } else {
    pickle += "\x8a\x08";
    append_little_endian(pickle, static_cast<uint64_t>(value), 8);
  }
}

void append_tensor(std::string& pickle, const TensorHeader& header, size_t storage) {
  pickle += "ctorch._utils\n_rebuild_tensor_v2\n((";
  append_text(pickle, "storage");
  pickle += std::string("ctorch\n") + storage_name(header.dtype) + "\n";
  append_text(pickle, std::to_string(storage));
  append_text(pickle, "cpu");
  append_int(pickle, element_count(header.shape));
  pickle += "tQ";
  append_int(pickle, 0);
  pickle += '(';
  for (const int64_t size : header.shape) append_int(pickle, size);
  pickle += "t(";
  std::vector<int64_t> strides(header.shape.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(header.shape[i], 1);
  for (const int64_t stride : strides) append_int(pickle, stride);
  pickle +=
      "t\x89"
      "ccollections\nOrderedDict\n)RtR";
}

std::string state_dict(const std::vector<TensorHeader>& headers) {
  std::string pickle = "\x80\x02}";
  for (size_t i = 0; i < headers.size(); ++i) {
    if (i % kBatch == 0) pickle += '(';
    append_text(pickle, headers[i].name);
    append_tensor(pickle, headers[i], i);
    if (i % kBatch == kBatch - 1 || i + 1 == headers.size()) pickle += 'u';
  }
  return pickle + '.';
}

// The archive as it grows: an entry is begun with its size, then its bytes follow, then its checksum.
class ArchiveWriter {
 public:
  explicit ArchiveWriter(const WritePart& write) : write_(write) {}

  void entry(const std::string& name, std::string_view bytes) {
    const std::string full = "archive/" + name;
    const uint64_t begin = at_;
    std::string header = "PK\3\4";
    append_little_endian(header, kVersion, 2);
    append_little_endian(header, kFlags, 2);
    append_little_endian(header, 0, 2);  // stored
    append_little_endian(header, kDate << 16, 4);
    append_little_endian(header, 0, 4);  // the checksum
    append_little_endian(header, kFull32, 4);
    append_little_endian(header, kFull32, 4);
    append_little_endian(header, full.size(), 2);
    // torch's own padding field, "FB", brings the data to a multiple of 64.
    const uint64_t unpadded = begin + kLocalBytes + full.size() + kZip64Bytes + 4;
    const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
    append_little_endian(header, kZip64Bytes + 4 + padding, 2);
    header += full;
    append_little_endian(header, 1, 2);
    append_little_endian(header, 16, 2);
    append_little_endian(header, bytes.size(), 8);
    append_little_endian(header, bytes.size(), 8);
    header += "FB";
    append_little_endian(header, padding, 2);
    header.append(padding, 'Z');
    put(header);
    put(bytes);
    const uint32_t crc = crc32(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
    std::string descriptor = "PK\7\10";
    append_little_endian(descriptor, crc, 4);
    append_little_endian(descriptor, bytes.size(), 8);
    append_little_endian(descriptor, bytes.size(), 8);
    put(descriptor);
    list(full, begin, bytes.size(), crc);
  }

  void end() {
    const uint64_t begin = at_, bytes = directory_.size();
    put(directory_);
    std::string end = "PK\6\6";
    append_little_endian(end, 44, 8);
    append_little_endian(end, kVersion, 2);
    append_little_endian(end, kVersion, 2);
    append_little_endian(end, 0, 8);  // volumes
    append_little_endian(end, entries_, 8);
    append_little_endian(end, entries_, 8);
    append_little_endian(end, bytes, 8);
    append_little_endian(end, begin, 8);
    end += "PK\6\7";
    append_little_endian(end, 0, 4);
    append_little_endian(end, begin + bytes, 8);
    append_little_endian(end, 1, 4);
    end += "PK\5\6";
    append_little_endian(end, 0, 4);
    append_little_endian(end, kFull16, 2);
    append_little_endian(end, kFull16, 2);
    append_little_endian(end, kFull32, 4);
    append_little_endian(end, kFull32, 4);
    append_little_endian(end, 0, 2);
    put(end);
  }

 private:
  void put(std::string_view bytes) {
    write_(bytes);
    at_ += bytes.size();
  }

  void list(const std::string& full, uint64_t begin, uint64_t size, uint32_t crc) {
    directory_ += "PK\1\2";
    append_little_endian(directory_, kVersion, 2);
    append_little_endian(directory_, kVersion, 2);
    append_little_endian(directory_, kFlags, 2);
    append_little_endian(directory_, 0, 2);
    append_little_endian(directory_, kDate << 16, 4);
    append_little_endian(directory_, crc, 4);
    append_little_endian(directory_, kFull32, 4);
    append_little_endian(directory_, kFull32, 4);
    append_little_endian(directory_, full.size(), 2);
    append_little_endian(directory_, 28, 2);
    append_little_endian(directory_, 0, 2);  // comment
    append_little_endian(directory_, 0, 2);  // volume
    append_little_endian(directory_, 0, 2);
    append_little_endian(directory_, 0, 4);
    append_little_endian(directory_, kFull32, 4);
    directory_ += full;
    append_little_endian(directory_, 1, 2);
    append_little_endian(directory_, 24, 2);
    append_little_endian(directory_, size, 8);
    append_little_endian(directory_, size, 8);
    append_little_endian(directory_, begin, 8);
    ++entries_;
  }

  const WritePart& write_;
  std::string directory_;
  uint64_t at_ = 0, entries_ = 0;
};

}  // namespace

void write_torch_bin(const std::filesystem::path& file, const std::vector<TensorHeader>& headers,
                     const ReadTensor& read) {
  std::set<std::string> seen;
  for (const TensorHeader& header : headers) {
    if (!is_printable_utf8(header.name))
      throw InputError(file.string(), "tensor '" + printable(header.name) + "' has a name that is no plain UTF-8 text");
    if (!seen.insert(header.name).second)
      throw InputError(file.string(), "tensor '" + header.name + "' is given twice");
  }
  const std::string pickle = state_dict(headers);
  write_file(file, [&](const WritePart& write) {
    ArchiveWriter archive(write);
    archive.entry("data.pkl", pickle);
    archive.entry("byteorder", "little");
    for (size_t i = 0; i < headers.size(); ++i) {
      const HostTensor tensor = read_promised(file, headers[i], read);
      const auto bytes = tensor.bytes();
      archive.entry(fmt::format("data/{}", i), {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    archive.entry("version", "3\n");
    archive.end();
  });
}

}  // namespace assay

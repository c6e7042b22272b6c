#include "cases/spec/host_tensor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "cases/spec/error.hpp"

namespace assay {

namespace {

struct DTypeRow {
  DType dtype;
  size_t bytes;
  std::string_view name, safetensors;
};

constexpr DTypeRow kDTypes[] = {
    {DType::kF64, 8, "float64", "F64"},    {DType::kF32, 4, "float32", "F32"}, {DType::kF16, 2, "float16", "F16"},
    {DType::kBF16, 2, "bfloat16", "BF16"}, {DType::kI64, 8, "int64", "I64"},   {DType::kI32, 4, "int32", "I32"},
    {DType::kU8, 1, "uint8", "U8"},
};

const DTypeRow& row_of(DType dtype) {
  for (const DTypeRow& row : kDTypes)
    if (row.dtype == dtype) return row;
  throw InputError("dtype", "value " + std::to_string(static_cast<int>(dtype)) + " is not a dtype");
}

template <class T>
bool holds(DType dtype) {
  if constexpr (std::is_same_v<T, double>) return dtype == DType::kF64;
  if constexpr (std::is_same_v<T, float>) return dtype == DType::kF32;
  if constexpr (std::is_same_v<T, int64_t>) return dtype == DType::kI64;
  if constexpr (std::is_same_v<T, int32_t>) return dtype == DType::kI32;
  if constexpr (std::is_same_v<T, uint8_t>) return dtype == DType::kU8;
  if constexpr (std::is_same_v<T, uint16_t>) return dtype == DType::kF16 || dtype == DType::kBF16;
  return false;
}

template <class T>
void require_type(DType dtype, const Shape& shape) {
  if (!holds<T>(dtype))
    throw InputError("tensor " + to_string(shape),
                     "read as another type than its dtype " + std::string(dtype_name(dtype)));
}

template <class T>
T load(std::span<const std::byte> bytes, int64_t flat) {
  T value;
  std::memcpy(&value, bytes.subspan(static_cast<size_t>(flat) * sizeof(T), sizeof(T)).data(), sizeof(T));
  return value;
}

float from_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double from_half(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return from_bits(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
    const double value = fraction * 0x1p-24;
    return sign ? -value : value;
  }
  return from_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

std::vector<std::byte> allocate(int64_t count, DType dtype, const Shape& shape) {
  const int64_t bytes_each = static_cast<int64_t>(size_of(dtype));
  if (count > std::numeric_limits<int64_t>::max() / bytes_each)
    throw InputError("tensor " + to_string(shape), "its size in bytes is beyond 64 bits");
  try {
    return std::vector<std::byte>(static_cast<size_t>(count * bytes_each));
  } catch (const std::exception&) {  // bad_alloc, length_error
    throw MemoryError("tensor " + to_string(shape),
                      "cannot allocate " + std::to_string(count * bytes_each) + " bytes on the host");
  }
}

void require_count(const Shape& shape, int64_t count, size_t given) {
  if (static_cast<size_t>(count) != given)
    throw InputError("tensor " + to_string(shape),
                     "needs " + std::to_string(count) + " values, got " + std::to_string(given));
}

}  // namespace

size_t size_of(DType dtype) { return row_of(dtype).bytes; }
std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }
std::string_view safetensors_name(DType dtype) { return row_of(dtype).safetensors; }

DType dtype_from_name(std::string_view name) {
  std::string known;
  for (const DTypeRow& row : kDTypes) {
    if (row.name == name) return row.dtype;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw InputError("dtype", "'" + std::string(name) + "' is not known", "known: " + known);
}

int64_t element_count(const Shape& shape) {
  for (int64_t size : shape)
    if (size < 0) throw InputError("shape " + to_string(shape), "has a negative dimension");
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (count > std::numeric_limits<int64_t>::max() / size)
      throw InputError("shape " + to_string(shape), "has more elements than 64 bits can count");
    count *= size;
  }
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

HostTensor::HostTensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      count_(element_count(shape_)),
      bytes_(allocate(count_, dtype_, shape_)) {}

HostTensor::HostTensor(Shape shape, const std::vector<float>& values) : dtype_(DType::kF32), shape_(std::move(shape)) {
  count_ = element_count(shape_);
  require_count(shape_, count_, values.size());
  bytes_ = allocate(count_, dtype_, shape_);
  if (count_) std::memcpy(bytes_.data(), values.data(), bytes_.size());
}

HostTensor::HostTensor(Shape shape, const std::vector<int64_t>& values)
    : dtype_(DType::kI64), shape_(std::move(shape)) {
  count_ = element_count(shape_);
  require_count(shape_, count_, values.size());
  bytes_ = allocate(count_, dtype_, shape_);
  if (count_) std::memcpy(bytes_.data(), values.data(), bytes_.size());
}

template <class T>
std::span<T> HostTensor::values() {
  require_type<T>(dtype_, shape_);
  return {reinterpret_cast<T*>(bytes_.data()), static_cast<size_t>(count_)};
}

template <class T>
std::span<const T> HostTensor::values() const {
  require_type<T>(dtype_, shape_);
  return {reinterpret_cast<const T*>(bytes_.data()), static_cast<size_t>(count_)};
}

#define ASSAY_INSTANTIATE(T)                     \
  template std::span<T> HostTensor::values<T>(); \
  template std::span<const T> HostTensor::values<T>() const;
ASSAY_INSTANTIATE(double)
ASSAY_INSTANTIATE(float)
ASSAY_INSTANTIATE(int64_t)
ASSAY_INSTANTIATE(int32_t)
ASSAY_INSTANTIATE(uint8_t)
ASSAY_INSTANTIATE(uint16_t)
#undef ASSAY_INSTANTIATE

double HostTensor::at(int64_t flat) const {
  switch (dtype_) {
    case DType::kF64:
      return load<double>(bytes_, flat);
    case DType::kF32:
      return load<float>(bytes_, flat);
    case DType::kF16:
      return from_half(load<uint16_t>(bytes_, flat));
    case DType::kBF16:
      return from_bits(static_cast<uint32_t>(load<uint16_t>(bytes_, flat)) << 16);
    case DType::kI64:
      return static_cast<double>(load<int64_t>(bytes_, flat));
    case DType::kI32:
      return load<int32_t>(bytes_, flat);
    case DType::kU8:
      return load<uint8_t>(bytes_, flat);
  }
  throw InputError("tensor " + to_string(shape_), "has no dtype");
}

std::vector<int64_t> coordinates(int64_t flat, const Shape& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] <= 0) continue;
    index[i] = flat % shape[i];
    flat /= shape[i];
  }
  return index;
}

}  // namespace assay

// HostTensor: a dense row-major tensor in host memory, the only tensor type that crosses folders.
// Owns its bytes; copying copies them. Shapes are slowest dimension first; an empty shape is a scalar (count 1).
// A default-constructed tensor is "absent": dtype float32, shape {0}, count 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kU8 };

size_t size_of(DType dtype);                     // bytes an element
std::string_view dtype_name(DType dtype);        // "float32", as cases and results say it
std::string_view safetensors_name(DType dtype);  // "F32"
DType dtype_from_name(std::string_view name);    // InputError if unknown

using Shape = std::vector<int64_t>;

// Product of the dimensions. InputError on a negative dimension or a product beyond int64.
int64_t element_count(const Shape& shape);
std::string to_string(const Shape& shape);  // "[2, 3]"

class HostTensor {
 public:
  HostTensor() : shape_{0} {}
  HostTensor(DType dtype, Shape shape);  // zero filled
  HostTensor(Shape shape, const std::vector<float>& values);
  HostTensor(Shape shape, const std::vector<int64_t>& values);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t count() const { return count_; }
  bool absent() const { return count_ == 0; }

  std::span<std::byte> bytes() { return bytes_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // T must match dtype (float, double, int64_t, int32_t, uint8_t; uint16_t for both 16-bit floats), else InputError.
  template <class T>
  std::span<T> values();
  template <class T>
  std::span<const T> values() const;

  // Element as double whatever the dtype. Flat row-major index; no bounds check beyond the span's.
  double at(int64_t flat) const;

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

struct NamedTensor {
  std::string name;
  HostTensor value;
};

// Flat index -> coordinates in shape, for messages.
std::vector<int64_t> coordinates(int64_t flat, const Shape& shape);

}  // namespace assay

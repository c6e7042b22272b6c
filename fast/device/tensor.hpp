// Tensor: a dense row-major block of device memory owned by an arena. Matrix: rows of a tensor, or columns
// [begin, begin + columns) of every row (a slice of a projection), with the distance between rows in elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cases/spec/error.hpp"
#include "cases/spec/host_tensor.hpp"
#include "fast/device/arena.hpp"

namespace assay::fast {

template <class T>
struct Tensor {
  T* data = nullptr;
  Shape shape;
  int64_t count() const { return element_count(shape); }
  explicit operator bool() const { return data != nullptr; }
};

struct Matrix {
  float* data = nullptr;
  int64_t rows = 0, columns = 0;
  int64_t stride = 0;  // elements from one row to the next
  Matrix slice(int64_t begin, int64_t width) const { return {data + begin, rows, width, stride}; }
};

// The tensor as [rows, rest]: rows = count / columns.
Matrix as_matrix(const Tensor<float>& tensor, int64_t columns);

template <class T>
Tensor<T> allocate(Arena& arena, Shape shape, std::string label) {
  const int64_t count = element_count(shape);
  if (count > INT64_MAX / static_cast<int64_t>(sizeof(T)))
    throw MemoryError(label, to_string(shape) + " has more bytes than can be counted");
  void* data = arena.allocate(count * static_cast<int64_t>(sizeof(T)), std::move(label));
  return {static_cast<T*>(data), std::move(shape)};
}

// Host to device. The host tensor must hold T (InputError); its memory may go after the call.
template <class T>
Tensor<T> upload(Arena& arena, const HostTensor& host, const std::string& label, cudaStream_t stream);

// The same into memory that is there; float32.
void upload_into(float* to, const HostTensor& host, const std::string& label, cudaStream_t stream);

// Device to host, as `shape`, whose last dimensions make up one row of the matrix. Waits for the copy.
HostTensor download(const Matrix& matrix, Shape shape, std::string_view label, cudaStream_t stream);
HostTensor download(const Tensor<float>& tensor, std::string_view label, cudaStream_t stream);

void zero(const Tensor<float>& tensor, cudaStream_t stream);

}  // namespace assay::fast

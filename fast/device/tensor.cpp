#include "fast/device/tensor.hpp"

#include <utility>

#include "cases/spec/error.hpp"
#include "fast/device/check.hpp"

namespace assay::fast {

Matrix as_matrix(const Tensor<float>& tensor, int64_t columns) {
  return {tensor.data, tensor.count() / columns, columns, columns};
}

template <class T>
Tensor<T> upload(Arena& arena, const HostTensor& host, const std::string& label, cudaStream_t stream) {
  const std::span<const T> values = host.values<T>();
  Tensor<T> tensor = allocate<T>(arena, host.shape(), label);
  if (values.empty()) return tensor;
  check(cudaMemcpyAsync(tensor.data, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream),
        ("upload of " + label).c_str());
  check(cudaStreamSynchronize(stream), ("upload of " + label).c_str());
  return tensor;
}
template Tensor<float> upload(Arena&, const HostTensor&, const std::string&, cudaStream_t);
template Tensor<int32_t> upload(Arena&, const HostTensor&, const std::string&, cudaStream_t);
template Tensor<int64_t> upload(Arena&, const HostTensor&, const std::string&, cudaStream_t);
template Tensor<uint8_t> upload(Arena&, const HostTensor&, const std::string&, cudaStream_t);

void upload_into(float* to, const HostTensor& host, const std::string& label, cudaStream_t stream) {
  const std::span<const float> values = host.values<float>();
  if (values.empty()) return;
  check(cudaMemcpyAsync(to, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream),
        ("upload of " + label).c_str());
  check(cudaStreamSynchronize(stream), ("upload of " + label).c_str());
}

HostTensor download(const Matrix& matrix, Shape shape, std::string_view label, cudaStream_t stream) {
  HostTensor host(DType::kF32, std::move(shape));
  if (host.count() != matrix.rows * matrix.columns)
    throw HarnessError(std::string(label), "download of " + std::to_string(matrix.rows) + " rows of " +
                                               std::to_string(matrix.columns) + " as " + to_string(host.shape()));
  if (host.count() == 0) return host;
  const std::string what = "download of " + std::string(label);
  const size_t width = static_cast<size_t>(matrix.columns) * sizeof(float);
  float* out = host.values<float>().data();
  if (matrix.stride == matrix.columns)
    check(cudaMemcpyAsync(out, matrix.data, width * static_cast<size_t>(matrix.rows), cudaMemcpyDeviceToHost, stream),
          what.c_str());
  else
    check(cudaMemcpy2DAsync(out, width, matrix.data, static_cast<size_t>(matrix.stride) * sizeof(float), width,
                            static_cast<size_t>(matrix.rows), cudaMemcpyDeviceToHost, stream),
          what.c_str());
  check(cudaStreamSynchronize(stream), what.c_str());
  return host;
}

HostTensor download(const Tensor<float>& tensor, std::string_view label, cudaStream_t stream) {
  return download(Matrix{tensor.data, 1, tensor.count(), tensor.count()}, tensor.shape, label, stream);
}

void zero(const Tensor<float>& tensor, cudaStream_t stream) {
  check(cudaMemsetAsync(tensor.data, 0, static_cast<size_t>(tensor.count()) * sizeof(float), stream),
        "cudaMemsetAsync");
}

}  // namespace assay::fast

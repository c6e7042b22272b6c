#include "fast/blocks/probes.hpp"

#include "fast/device/check.hpp"

namespace assay::fast {

void Probes::add_always(const std::string& name, const Matrix& values, Shape inner) {
  Shape shape = {rows_, columns_};
  if (inner.empty()) inner = {values.columns};
  shape.insert(shape.end(), inner.begin(), inner.end());
  if (kept_ == nullptr) {
    probes_.push_back({name, download(values, std::move(shape), name, stream_)});
    return;
  }
  const Tensor<float> copy = allocate<float>(*kept_, shape, "probe " + name);
  if (copy.count() != values.rows * values.columns)
    throw HarnessError(name, "probe of " + std::to_string(values.rows) + " rows of " + std::to_string(values.columns) +
                                 " as " + to_string(shape));
  const size_t width = static_cast<size_t>(values.columns) * sizeof(float);
  check(cudaMemcpy2DAsync(copy.data, width, values.data, static_cast<size_t>(values.stride) * sizeof(float), width,
                          static_cast<size_t>(values.rows), cudaMemcpyDeviceToDevice, stream_),
        ("copy of probe " + name).c_str());
  kept_probes_.push_back({name, copy});
}

std::vector<NamedTensor> download_kept(const std::vector<KeptProbe>& probes, cudaStream_t stream) {
  std::vector<NamedTensor> downloaded;
  downloaded.reserve(probes.size());
  for (const KeptProbe& probe : probes) downloaded.push_back({probe.name, download(probe.values, probe.name, stream)});
  return downloaded;
}

}  // namespace assay::fast

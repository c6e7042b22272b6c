#include "runners/counted_source.hpp"

#include <utility>

namespace assay {

HostTensor CountedSource::read(const std::string& name) const {
  HostTensor tensor = source_->read(name);
  count(name, tensor.count());
  return tensor;
}

HostTensor CountedSource::read_elements(const std::string& name, int64_t begin, int64_t elements) const {
  HostTensor tensor = source_->read_elements(name, begin, elements);
  count(name, elements);
  return tensor;
}

std::optional<Nf4Weight> CountedSource::nf4(const std::string& name) const {
  std::optional<Nf4Weight> weight = source_->nf4(name);
  if (weight) count(name, element_count(source_->header(name).shape));
  return weight;
}

std::map<std::string, int64_t> CountedSource::take() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(elements_, {});
}

void CountedSource::count(const std::string& name, int64_t elements) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  elements_[name] += elements;
}

}  // namespace assay

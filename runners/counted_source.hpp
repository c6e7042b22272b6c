// CountedSource: a weight source that counts what is read of every tensor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cases/spec/weight_source.hpp"

namespace assay {

class CountedSource final : public WeightSource {
 public:
  explicit CountedSource(std::shared_ptr<const WeightSource> source) : source_(std::move(source)) {}

  std::vector<std::string> names() const override { return source_->names(); }
  bool has(const std::string& name) const override { return source_->has(name); }
  TensorHeader header(const std::string& name) const override { return source_->header(name); }
  std::string where(const std::string& name) const override { return source_->where(name); }
  std::string place() const override { return source_->place(); }
  HostTensor read(const std::string& name) const override;
  HostTensor read_elements(const std::string& name, int64_t begin, int64_t count) const override;
  std::optional<Nf4Weight> nf4(const std::string& name) const override;

  // Elements read since the last call, by tensor: a tensor read twice counts twice its size, in whatever parts.
  std::map<std::string, int64_t> take() const;

 private:
  void count(const std::string& name, int64_t elements) const;

  std::shared_ptr<const WeightSource> source_;
  mutable std::mutex mutex_;  // a subject may read ahead in a thread of its own
  mutable std::map<std::string, int64_t> elements_;
};

}  // namespace assay

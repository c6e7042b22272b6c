// The repository's own configs as loaded models, and calls on them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/model_config.hpp"
#include "cases/spec/weights.hpp"
#include "reference/subject.hpp"
#include "reference/tensor.hpp"
#include "reference/weight_store.hpp"

namespace assay::reference {

inline ModelConfig repository_config(const std::string& id) {
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases" / "models" / (id + ".config.json"));
}

inline std::unique_ptr<Model> load(const std::string& id, const LoadOptions& options = {}) {
  const ModelConfig config = repository_config(id);
  return ReferenceSubject().load(config, open_weights(config), options);
}

// The config's weights for a block by itself: resident, in float32.
inline std::unique_ptr<WeightStore> store_of(const ModelConfig& config, std::shared_ptr<const WeightSource> source) {
  return open_store(config, std::move(source), {}, std::make_shared<MemoryCount>());
}

// A source with some tensors replaced, added or taken away.
class ChangedSource final : public WeightSource {
 public:
  explicit ChangedSource(std::shared_ptr<const WeightSource> source) : source_(std::move(source)) {}
  std::map<std::string, HostTensor> replaced;
  std::set<std::string> removed;

  std::vector<std::string> names() const override {
    std::set<std::string> names;
    for (const std::string& name : source_->names()) names.insert(name);
    for (const auto& [name, value] : replaced) names.insert(name);
    for (const std::string& name : removed) names.erase(name);
    return {names.begin(), names.end()};
  }
  bool has(const std::string& name) const override {
    return !removed.contains(name) && (replaced.contains(name) || source_->has(name));
  }
  HostTensor read(const std::string& name) const override {
    return replaced.contains(name) ? replaced.at(name) : source_->read(name);
  }

 private:
  std::shared_ptr<const WeightSource> source_;
};

inline HostTensor tokens(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<int64_t> flat;
  for (const std::vector<int64_t>& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return HostTensor({static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())}, flat);
}

inline HostTensor mask(const std::vector<std::vector<int>>& rows) {
  HostTensor mask(DType::kU8, {static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
  size_t at = 0;
  for (const std::vector<int>& row : rows)
    for (const int value : row) mask.values<uint8_t>()[at++] = static_cast<uint8_t>(value);
  return mask;
}

// logits [B, L, V] of one call
inline at::Tensor logits(Session& session, const std::vector<std::vector<int64_t>>& rows, HostTensor padding = {}) {
  Call call;
  call.tokens = tokens(rows);
  call.mask = std::move(padding);
  call.capture = false;
  return to_aten(*session.forward(call).find("logits"));
}

// What a refused action says; empty if it was not refused with this kind of error.
template <class Kind, class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

inline void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  EXPECT_NE(text, "") << "was accepted, or refused as another kind of error";
  for (const char* part : parts) EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
}

}  // namespace assay::reference

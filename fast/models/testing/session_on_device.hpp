// A loaded model and its sessions for tests of every family's tiny config on the device; skipped where there is none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/weights.hpp"
#include "fast/device/device.hpp"
#include "fast/models/network.hpp"
#include "fast/models/session.hpp"

namespace assay::fast {

inline ModelConfig tiny(const std::string& model) {
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases/models" / model / "tiny.config.json");
}

class SessionOnDevice : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!device_facts().is_usable) GTEST_SKIP() << device_facts().reason;
    config = tiny(GetParam());
    model = load_model(config, *open_weights(config), {});
    vocabulary = model_spec(config.model).vocabulary(config);
  }
  std::unique_ptr<Session> start(int64_t rows, CacheKind cache, std::map<std::string, std::string> forms = {},
                                 int64_t limit = 0) {
    SessionOptions options;
    options.rows = rows;
    options.cache = cache;
    options.forms = std::move(forms);
    options.limit = limit;
    return model->start(options);
  }
  // Columns [first, first + columns) of a fixed text, another one in each row.
  Call call(int64_t rows, int64_t first, int64_t columns) const {
    Call call;
    call.tokens = HostTensor(DType::kI64, {rows, columns});
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t t = 0; t < columns; ++t)
        call.tokens.values<int64_t>()[static_cast<size_t>(b * columns + t)] =
            ((first + t) * (first + t + 5) * 3 + 11 * b + 1) % vocabulary;
    return call;
  }
  // Largest difference of logits: row, column of `whole` against row, column of `part`.
  double difference(const Trace& whole, int64_t row, int64_t column, const Trace& part, int64_t part_row,
                    int64_t part_column) const {
    const HostTensor &a = *whole.find("logits"), &b = *part.find("logits");
    double largest = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      const double d = std::abs(a.at((row * a.shape()[1] + column) * vocabulary + v) -
                                b.at((part_row * b.shape()[1] + part_column) * vocabulary + v));
      largest = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(largest, d);
    }
    return largest;
  }
  ModelConfig config;
  std::unique_ptr<Model> model;
  int64_t vocabulary = 0;
};

}  // namespace assay::fast

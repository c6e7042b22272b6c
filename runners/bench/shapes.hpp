// What `assay bench` times: rows of runners/bench/shapes.json (schema runners/schema/bench_shapes.schema.json).
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cases/spec/op_case.hpp"

namespace assay::bench {

struct Row {
  std::string id;  // "ssd.8x2048_h80"
  std::string op, form;
  OpPoint point;
  std::map<std::string, int64_t> gate;  // sizes that the reference computes instead: B, L, T, out
  nlohmann::json peer;                  // null, or {what, dtype, limit_ms?, best_ms?, target_ms?}
};

struct Table {
  double copy_tbps = 0, float32_tflops = 0;  // roofs
  double peak_tbps = 0, l2_mb = 0;           // what the memory can do at most, and what need not move
  std::string source;
  std::vector<Row> rows;
};

Table read_table(const std::filesystem::path& root);  // InputError naming file and pointer
Table parse_table(const nlohmann::json& document, const std::filesystem::path& file);

// Rows by op, id or glob over ids; all if nothing is named. InputError with the nearest names.
std::vector<const Row*> choose(const Table& table, const std::vector<std::string>& kernels);

}  // namespace assay::bench

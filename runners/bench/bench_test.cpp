#include <gtest/gtest.h>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "runners/bench/measure.hpp"
#include "runners/ops/problems.hpp"
#include "runners/testing/op_subject.hpp"

namespace assay::bench {
namespace {

using assay::testing::OpFaults;
using assay::testing::OpSubject;
using nlohmann::json;

Table table() {
  return parse_table(json::parse(R"({
    "schema": "assay.bench_shapes/1",
    "roofs": {"copy_tbps": 2, "float32_tflops": 50, "peak_tbps": 3, "l2_mb": 0.5, "source": "a made-up machine"},
    "source": "made-up figures",
    "rows": [
      {"id": "causal_conv1d.part", "op": "causal_conv1d", "form": "sequence", "inputs": ["bias"],
       "shape": {"B": 3, "L": 9, "C": 5, "K": 4}, "gate": {"B": 1, "L": 4}},
      {"id": "rms_norm.whole", "op": "rms_norm", "form": "", "inputs": [], "shape": {"T": 4, "H": 6}}
    ]})"),
                     "shapes.json");
}

Measured measured(size_t row, OpFaults faults = {}) {
  static const Table rows = table();
  OpSubject subject("subject", true, faults), reference("reference");
  return measure(rows.rows.at(row), rows, subject, reference, 5);
}

TEST(Bench, TheTableOfTheRepositoryIsWhole) {
  const Table rows = read_table(ASSAY_ROOT);
  EXPECT_GE(rows.rows.size(), 12u);
  EXPECT_EQ(choose(rows, {"ssd"}).size(), choose(rows, {"ssd.*"}).size());
  EXPECT_EQ(choose(rows, {}).size(), rows.rows.size());
  EXPECT_THROW(choose(rows, {"sdd"}), InputError);
}

TEST(Bench, AFormThatNoEngineHasIsRefused) {
  const std::filesystem::path file = std::filesystem::path(ASSAY_ROOT) / "runners/bench/shapes.json";
  json document = read_json(file);
  document.at("rows").at(0).at("form") = "chunky";
  EXPECT_THROW(parse_table(document, file), InputError);
}

TEST(Bench, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

Row row_of(const std::string& op, OpPoint point, std::map<std::string, int64_t> gate) {
  Row row;
  row.op = op;
  row.point = std::move(point);
  row.gate = std::move(gate);
  return row;
}

TEST(Bench, APartIsTheLastRowsAndTheFirstColumns) {
  const Row row = row_of("causal_conv1d", {.sizes = {{"B", 3}, {"L", 4}, {"C", 2}, {"K", 3}}}, {{"B", 2}, {"L", 2}});
  EXPECT_EQ(gate_entries(row, {}), (Entries{{"B", {1, 2}}, {"L", {0, 1}}}));
}

TEST(Bench, APartOfAnAttentionIsItsLastQueries) {
  const Row row = row_of(
      "attention", {.sizes = {{"B", 2}, {"L", 6}, {"T", 9}, {"nq", 2}, {"nkv", 1}, {"hd", 4}, {"hdv", 4}}}, {{"L", 2}});
  EXPECT_EQ(gate_entries(row, {}), (Entries{{"L", {4, 5}}}));
}

TEST(Bench, APartTakesTheTableEntriesThatItUses) {
  const Row row =
      row_of("experts", {.sizes = {{"T", 3}, {"k", 2}, {"E", 9}, {"X", 1}, {"R", 1}, {"F", 1}}}, {{"T", 2}});
  OpCall call;
  call.op = "experts";
  call.inputs.push_back({"ids", HostTensor(Shape{3, 2}, std::vector<int64_t>{0, 1, 7, 2, 2, 4})});
  EXPECT_EQ(gate_entries(row, call), (Entries{{"E", {2, 4, 7}}, {"T", {1, 2}}}));
}

TEST(Bench, ARightKernelIsTimed) {
  const Measured part = measured(0);
  EXPECT_TRUE(part.gate.passed) << part.gate.text;
  EXPECT_EQ(part.gate.text, "B 1 L 4");
  EXPECT_DOUBLE_EQ(part.median_ms, 0.012);
  EXPECT_DOUBLE_EQ(part.p10_ms, 0.0104);
  EXPECT_DOUBLE_EQ(part.p90_ms, 0.0136);
  EXPECT_DOUBLE_EQ(part.roof_ms, 0.002);  // 4 MB at 2 TB/s
  EXPECT_DOUBLE_EQ(part.roof_fraction(), 0.002 / 0.012);
  EXPECT_EQ(measured(1).gate.text, "whole");
  check_schema(to_json(part, Capabilities{.name = "x", .device = "y"}), "bench.schema.json", "row");
}

TEST(Bench, AWrongKernelHasNoTime) {
  // y [3, 9, 5]: flat 90 is the first element of the last row, which only the whole call has there.
  const Measured far = measured(0, {.wrong_at = 90});
  EXPECT_FALSE(far.gate.passed);
  EXPECT_EQ(far.median_ms, 0);
  EXPECT_NE(far.gate.text.find("y [2,0,0]"), std::string::npos) << far.gate.text;
  EXPECT_NE(lines(far).at(0).find("FAIL"), std::string::npos);
  const json row = to_json(far, Capabilities{.name = "x", .device = "y"});
  EXPECT_TRUE(row.at("median_ms").is_null());
  check_schema(row, "bench.schema.json", "row");
  // Flat 19 lies in the part's own call only, in its last column.
  EXPECT_FALSE(measured(0, {.wrong_at = 19}).gate.passed);
  EXPECT_FALSE(measured(1, {.wrong_at = 23}).gate.passed);
  EXPECT_FALSE(measured(0, {.lacks_state = true}).gate.passed);
  EXPECT_FALSE(measured(1, {.names_no_kernel = true}).gate.passed);
}

TEST(Bench, ATimeThatNoMachineReachesIsAWrongCount) {
  OpSubject subject("subject", true), reference("reference");
  Table rows = table();
  rows.peak_tbps = 0.29;  // 3.5 MB beyond the cache in 0.0121 ms; measured: 0.012 ms
  const Measured wrong = measure(rows.rows.at(1), rows, subject, reference, 5);
  EXPECT_FALSE(wrong.gate.passed);
  EXPECT_NE(wrong.gate.text.find("byte count is wrong"), std::string::npos) << wrong.gate.text;
  EXPECT_NE(lines(wrong).at(0).find("FAIL"), std::string::npos);
  rows.peak_tbps = 0.3;
  EXPECT_TRUE(measure(rows.rows.at(1), rows, subject, reference, 5).gate.passed);
}

TEST(Bench, EveryOpHasARow) {
  const Table rows = read_table(ASSAY_ROOT);
  for (const OpSpec& spec : op_specs()) EXPECT_FALSE(choose(rows, {spec.name}).empty()) << spec.name;
}

}  // namespace
}  // namespace assay::bench

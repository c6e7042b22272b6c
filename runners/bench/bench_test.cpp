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
    "roofs": {"copy_tbps": 2, "float32_tflops": 50, "source": "a made-up machine"},
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

TEST(Bench, QuantilesLieBetweenNeighbours) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.9), 7);
}

TEST(Bench, APartIsTheLastRowsAndTheFirstColumns) {
  const OpSpec& spec = op_spec("causal_conv1d");
  HostTensor x(DType::kF32, {3, 4, 2});
  for (size_t i = 0; i < 24; ++i) x.values<float>()[i] = static_cast<float>(i);
  OpPoint part;
  part.sizes = {{"B", 2}, {"L", 2}, {"C", 2}, {"K", 3}};
  const HostTensor cut = part_of(x, *spec.input("x"), part);
  EXPECT_EQ(cut.shape(), (Shape{2, 2, 2}));
  const std::vector<float> expected{8, 9, 10, 11, 16, 17, 18, 19};
  EXPECT_TRUE(std::ranges::equal(cut.values<float>(), expected));
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
  EXPECT_NE(far.gate.text.find("y [0,0,0]"), std::string::npos) << far.gate.text;
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

}  // namespace
}  // namespace assay::bench

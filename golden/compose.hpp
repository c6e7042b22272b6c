// From the tensors that the original computed to the golden that is kept: samples, norms and the noise floor.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cases/spec/model_config.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_source.hpp"
#include "golden/golden.hpp"

namespace assay::golden {

// Up to two significant digits, never below value: a floor need not be exact and a short one reads better.
float round_up(double value);

// What the original computed of one tensor, [positions, row...] each.
struct Runs {
  HostTensor narrow;               // in float32
  HostTensor wide;                 // in float64
  std::vector<HostTensor> nudged;  // in float32, every weight moved to a neighbouring float32
};

// One tensor. Its floors are the largest difference of narrow from any of the other runs. HarnessError naming the
// tensor where sizes do not fit, a value is not finite, or an element is exactly zero in some runs only although the
// tensor is sparse: a choice (of experts) that rounding decides. sample: as sample_indices gives it.
Record compose_record(const std::string& name, const Shape& row, int64_t positions, std::vector<int64_t> sample,
                      const Runs& runs, bool is_sparse = false);

// The whole golden of one input. tensors: a file that golden/record/record.py wrote; run: its run.json; manifest: the
// assay.json that it worked from. HarnessError if they do not fit each other or the config's probe table.
Golden compose(const ModelConfig& config, const std::string& input, const std::string& kind,
               const std::vector<ProbeSpec>& probes, const WeightSource& tensors, const nlohmann::json& run,
               const nlohmann::json& manifest);

}  // namespace assay::golden

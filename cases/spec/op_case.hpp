// OpCase: one op at many shapes, read from cases/ops/<op>/<variant>.json (schema cases/schema/op_case.schema.json).
// Its inputs are drawn by runners/ops; R is the reference op, so there is no golden.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/case.hpp"
#include "cases/spec/op_spec.hpp"

namespace assay {

// One call: sizes, attributes, and which of the optional inputs are given.
struct OpPoint {
  std::map<std::string, int64_t> sizes;
  std::map<std::string, double> attributes;
  std::vector<std::string> optional_inputs;

  bool has_input(const OpTensor& input) const;
  Shape shape_of(const OpTensor& tensor) const;
  std::string text(const OpSpec& spec) const;  // "B 2, L 9, Nh 6, P 8, G 2, N 16, chunk_size 8, with dt_bias"
};

// Without what the op lacks or needs: InputError(where, ...) for a size that is missing, unknown or below 1, an unknown
// attribute, an optional input that is none, or sizes that do not divide.
void check_point(const OpSpec& spec, const OpPoint& point, const std::string& where);

struct OpCase {
  std::string id;  // "ops/ssd.edges"
  std::string op, variant, tier, why;
  std::vector<std::string> forms;  // empty = every form of the subject
  std::vector<OpPoint> points;     // in order of the file, products with the last value fastest
  std::map<std::string, std::pair<double, double>> ranges;
  uint64_t seed = 0;
  double factor = 0;  // bound override; 0 = the usual factor
  // Sizes of which the reference computes some entries only, those that an offset reaches last or wraps at.
  std::vector<std::string> sample;
  std::filesystem::path file;
  std::string digest;
};

OpCase read_op_case(const std::filesystem::path& file);  // InputError naming file and pointer
OpCase parse_op_case(const nlohmann::json& document, const std::filesystem::path& file, const std::string& op,
                     const std::string& variant);

// What a run knows of an op case before it is run: id, model "ops", aspect the op; no config, no legs.
Case row_of(const OpCase& op_case);

// The files of all op cases below root/cases/ops; none if there is no such folder.
std::vector<std::filesystem::path> op_case_files(const std::filesystem::path& root);
// Every one of them read, sorted by id. Errors of read_op_case.
std::vector<OpCase> read_op_cases(const std::filesystem::path& root);

}  // namespace assay

#include "runners/bench/shapes.hpp"

#include <fmt/format.h>

#include <set>

#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/op_forms.hpp"
#include "cases/spec/select.hpp"

namespace assay::bench {

using nlohmann::json;

Table parse_table(const json& document, const std::filesystem::path& file) {
  check_schema(document, "bench_shapes.schema.json", file);
  Table table;
  table.copy_tbps = document.at("roofs").at("copy_tbps").get<double>();
  table.float32_tflops = document.at("roofs").at("float32_tflops").get<double>();
  table.peak_tbps = document.at("roofs").at("peak_tbps").get<double>();
  table.l2_mb = document.at("roofs").at("l2_mb").get<double>();
  table.source = document.at("source").get<std::string>();
  std::set<std::string> ids;
  const json& rows = document.at("rows");
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string where = fmt::format("{} /rows/{}", file.string(), i);
    Row row;
    row.id = rows[i].at("id").get<std::string>();
    row.op = rows[i].at("op").get<std::string>();
    row.form = rows[i].at("form").get<std::string>();
    row.point.sizes = rows[i].at("shape").get<std::map<std::string, int64_t>>();
    row.point.attributes = rows[i].value("attributes", std::map<std::string, double>{});
    row.point.optional_inputs = rows[i].at("inputs").get<std::vector<std::string>>();
    row.gate = rows[i].value("gate", std::map<std::string, int64_t>{});
    row.peer = rows[i].value("peer", json());
    check_point(op_spec(row.op), row.point, where);
    if (!row.form.empty()) check_form(row.op, row.form, where + "/form");
    for (const auto& [name, size] : row.gate)
      if (const auto whole = row.point.sizes.find(name); whole == row.point.sizes.end() || size > whole->second)
        throw InputError(where + "/gate/" + name, "is no part of the shape");
    if (!ids.insert(row.id).second) throw InputError(where + "/id", "a second row is named '" + row.id + "'");
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table read_table(const std::filesystem::path& root) {
  const std::filesystem::path file = root / "runners" / "bench" / "shapes.json";
  return parse_table(read_json(file), file);
}

std::vector<const Row*> choose(const Table& table, const std::vector<std::string>& kernels) {
  std::set<const Row*> chosen;
  for (const std::string& kernel : kernels) {
    const size_t before = chosen.size();
    bool is_known = false;
    std::set<std::string> known;
    for (const Row& row : table.rows) {
      known.insert({row.op, row.id});
      if (row.op != kernel && !glob_matches(kernel, row.id)) continue;
      is_known = true;
      chosen.insert(&row);
    }
    for (const ModelSpec& spec : model_specs()) known.emplace(spec.name);
    if (!is_known && chosen.size() == before)
      throw InputError("bench", "no kernel or model '" + kernel + "' is timed",
                       "nearest: " + nearest_list(kernel, {known.begin(), known.end()}));
  }
  std::vector<const Row*> rows;
  for (const Row& row : table.rows)
    if (kernels.empty() || chosen.contains(&row)) rows.push_back(&row);
  return rows;
}

}  // namespace assay::bench

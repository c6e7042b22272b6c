#include "cases/spec/op_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/op_forms.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMostPoints = 4096;  // a product that grew by mistake would run for hours

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Where in the file, for messages.
struct Spot {
  const fs::path& file;
  std::string pointer;
  std::string operator/(const std::string& member) const { return file.string() + " " + pointer + "/" + member; }
};

std::vector<double> numbers(const Json& value, const std::string& where) {
  if (value.is_number()) return {value.get<double>()};
  std::vector<double> result;
  for (const Json& one : value) {
    if (!one.is_number()) throw InputError(where, one.dump() + " is not a number");
    result.push_back(one.get<double>());
  }
  if (result.empty()) throw InputError(where, "is an empty list", "say at least one value");
  return result;
}

void set(OpPoint& point, const OpSpec& spec, const std::string& name, double value, const std::string& where) {
  if (!contains(spec.sizes, name)) {
    point.attributes[name] = value;
    return;
  }
  if (value != std::floor(value) || std::abs(value) > 0x1p53)
    throw InputError(where, fmt::format("{} is not a whole number", value));
  point.sizes[name] = static_cast<int64_t>(value);
}

// The product of one shape's values, sizes first in the op's own order, the last fastest.
std::vector<OpPoint> points_of(const OpSpec& spec, const Json& shape, const Spot& spot) {
  std::vector<std::string> order;
  for (const std::string& name : spec.sizes)
    if (shape.contains(name)) order.push_back(name);
  for (const auto& [name, value] : shape.items()) {
    if (contains(spec.sizes, name)) continue;
    if (!contains(spec.attributes, name)) {
      std::vector<std::string> known = spec.sizes;
      known.insert(known.end(), spec.attributes.begin(), spec.attributes.end());
      throw InputError(spot / name, fmt::format("{} has no size or attribute '{}'", spec.name, name),
                       fmt::format("it has {}", fmt::join(known, ", ")));
    }
    order.push_back(name);
  }
  std::vector<OpPoint> points(1);
  for (const std::string& name : order) {
    std::vector<OpPoint> longer;
    for (const OpPoint& point : points)
      for (const double value : numbers(shape.at(name), spot / name)) {
        longer.push_back(point);
        set(longer.back(), spec, name, value, spot / name);
      }
    points = std::move(longer);
    if (points.size() > kMostPoints) throw InputError(spot / name, fmt::format("more than {} calls", kMostPoints));
  }
  return points;
}

std::vector<std::vector<std::string>> choices_of(const Json& inputs) {
  std::vector<std::vector<std::string>> choices(1);
  for (const auto& [name, values] : inputs.items()) {
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& choice : choices)
      for (const Json& is_given : values) {
        longer.push_back(choice);
        if (is_given.get<bool>()) longer.back().push_back(name);
      }
    choices = std::move(longer);
  }
  return choices;
}

std::vector<std::string> forms_of(const Json& document, const fs::path& file) {
  const Json forms = document.value("forms", Json("*"));
  if (forms == "*") return {};
  std::vector<std::string> names;
  if (forms.is_array())
    for (const Json& name : forms)
      if (name.is_string()) names.push_back(name.get<std::string>());
  if (names.empty() || names.size() != forms.size())
    throw InputError(file.string() + " /forms", forms.dump() + " is not a choice of forms",
                     "\"*\", or a list of names such as [\"chunked\"]");
  return names;
}

}  // namespace

bool OpPoint::has_input(const OpTensor& input) const {
  return !input.is_optional || contains(optional_inputs, input.name);
}

Shape OpPoint::shape_of(const OpTensor& tensor) const {
  Shape shape;
  for (const std::string& size : tensor.sizes) shape.push_back(sizes.at(size));
  return shape;
}

std::string OpPoint::text(const OpSpec& spec) const {
  std::vector<std::string> parts;
  for (const std::string& size : spec.sizes) parts.push_back(fmt::format("{} {}", size, sizes.at(size)));
  for (const auto& [name, value] : attributes) parts.push_back(fmt::format("{} {}", name, value));
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (!optional_inputs.empty()) text += fmt::format(", with {}", fmt::join(optional_inputs, " "));
  return text;
}

void check_point(const OpSpec& spec, const OpPoint& point, const std::string& where) {
  for (const std::string& size : spec.sizes) {
    const auto found = point.sizes.find(size);
    if (found == point.sizes.end())
      throw InputError(where, fmt::format("size {} is missing", size),
                       fmt::format("{} needs {}", spec.name, fmt::join(spec.sizes, ", ")));
    if (found->second < 1) throw InputError(where, fmt::format("size {} is {}, at least 1", size, found->second));
  }
  const auto refuse = [&](const char* what, const std::string& name, const std::vector<std::string>& known) {
    throw InputError(where, fmt::format("{} has no {} '{}'", spec.name, what, name),
                     "nearest: " + nearest_list(name, known));
  };
  for (const auto& [name, value] : point.sizes)
    if (!contains(spec.sizes, name)) refuse("size", name, spec.sizes);
  for (const auto& [name, value] : point.attributes)
    if (!contains(spec.attributes, name)) refuse("attribute", name, spec.attributes);
  std::vector<std::string> optional;
  for (const OpTensor& input : spec.inputs)
    if (input.is_optional) optional.push_back(input.name);
  for (const std::string& name : point.optional_inputs)
    if (!contains(optional, name)) refuse("optional input", name, optional);
  const auto value_of = [&point](const std::string& name) -> double {
    if (const auto size = point.sizes.find(name); size != point.sizes.end()) return static_cast<double>(size->second);
    const auto attribute = point.attributes.find(name);
    return attribute == point.attributes.end() ? 1 : attribute->second;
  };
  for (const auto& [divisor, whole] : spec.divides)
    if (const double by = value_of(divisor); by < 1 || std::fmod(value_of(whole), by) != 0)
      throw InputError(where, fmt::format("{} {} does not divide {} {}", divisor, by, whole, value_of(whole)));
}

OpCase parse_op_case(const Json& document, const fs::path& file, const std::string& op, const std::string& variant) {
  check_schema(document, "op_case.schema.json", file);
  OpCase result;
  result.id = "ops/" + op + "." + variant;
  result.op = op;
  result.variant = variant;
  result.file = file;
  const OpSpec& spec = op_spec(op);
  result.tier = document.at("tier").get<std::string>();
  result.why = document.at("why").get<std::string>();
  result.seed = document.at("seed").get<uint64_t>();
  result.forms = forms_of(document, file);
  for (const std::string& form : result.forms) check_form(op, form, file.string() + " /forms");
  if (document.contains("bound")) result.factor = document.at("bound").at("factor").get<double>();
  result.sample = document.value("sample", std::vector<std::string>{});
  for (const std::string& size : result.sample)
    if (!contains(spec.sizes, size))
      throw InputError(file.string() + " /sample", fmt::format("{} has no size '{}'", op, size),
                       "nearest: " + nearest_list(size, spec.sizes));
  const Json ranges = document.value("ranges", Json::object());
  for (const auto& [name, range] : ranges.items()) {
    const std::string where = file.string() + " /ranges/" + name;
    const OpTensor* input = spec.input(name);
    if (!input || input->dtype != DType::kF32) throw InputError(where, op + " draws no such input from a range");
    result.ranges[name] = {range.at(0).get<double>(), range.at(1).get<double>()};
    // Equal ends are one value: keys that are zero, as padded ones are.
    if (!(result.ranges[name].first <= result.ranges[name].second)) throw InputError(where, "is an empty range");
  }
  const Json attributes = document.value("attributes", Json::object());
  const Json& shapes = document.at("shapes");
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Spot spot{file, fmt::format("/shapes/{}", i)};
    for (const OpPoint& base : points_of(spec, shapes[i], spot))
      for (const std::vector<std::string>& choice : choices_of(document.value("inputs", Json::object()))) {
        OpPoint point = base;
        point.optional_inputs = choice;
        for (const auto& [name, value] : attributes.items()) point.attributes.emplace(name, value.get<double>());
        check_point(spec, point, file.string() + " " + spot.pointer);
        result.points.push_back(std::move(point));
      }
    if (result.points.size() > kMostPoints)
      throw InputError(file.string() + " " + spot.pointer, fmt::format("more than {} calls", kMostPoints));
  }
  result.digest = sha256(canonical(document));
  return result;
}

OpCase read_op_case(const fs::path& file) {
  return parse_op_case(read_json(file), file, fs::absolute(file).parent_path().filename().string(),
                       file.stem().string());
}

Case row_of(const OpCase& op_case) {
  Case row;
  row.id = op_case.id;
  row.model = kOpModel;
  row.aspect = op_case.op;
  row.variant = op_case.variant;
  row.tier = op_case.tier;
  row.dtype = "float32";
  row.why = op_case.why;
  row.file = op_case.file;
  row.digest = op_case.digest;
  return row;
}

std::vector<fs::path> op_case_files(const fs::path& root) {
  std::set<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root / "cases" / "ops", error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".json") && name[0] != '.') files.insert(at->path());
  }
  return {files.begin(), files.end()};
}

std::vector<OpCase> read_op_cases(const fs::path& root) {
  std::vector<OpCase> cases;
  for (const fs::path& file : op_case_files(root)) cases.push_back(read_op_case(file));
  std::sort(cases.begin(), cases.end(), [](const OpCase& a, const OpCase& b) { return a.id < b.id; });
  return cases;
}

}  // namespace assay

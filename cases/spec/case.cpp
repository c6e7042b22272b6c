#include "cases/spec/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

std::string where(const std::filesystem::path& file, const std::string& pointer) {
  return file.string() + " " + pointer;
}

std::string kind_of(const std::string& dtype) {
  if (dtype == "float16") return "f16";
  if (dtype == "bfloat16") return "bf16";
  return "f32";
}

Row parse_row(const Json& value) {
  Row row;
  row.input = value.at("input").get<std::string>();
  row.length = value.value("length", int64_t{0});
  row.pad = value.value("pad", int64_t{0});
  if (value.contains("change"))
    row.change =
        Row::Change{value.at("change").at("position").get<int64_t>(), value.at("change").at("token").get<int64_t>()};
  return row;
}

CallSize parse_call(const Json& value, const std::filesystem::path& file, const std::string& pointer) {
  if (value == "each") return {CallSize::Kind::kEach, 0};
  if (value == "rest") return {CallSize::Kind::kRest, 0};
  if (value.is_number_integer() && value.get<int64_t>() >= 1) return {CallSize::Kind::kColumns, value.get<int64_t>()};
  throw InputError(where(file, pointer), value.dump() + " is not a call",
                   "expected a number of columns (at least 1), \"each\" or \"rest\"");
}

CacheKind parse_cache(const std::string& name) {
  if (name == "dynamic") return CacheKind::kDynamic;
  if (name == "static") return CacheKind::kStatic;
  return CacheKind::kNone;
}

Leg::From parse_from(const std::string& name) {
  if (name == "safetensors") return Leg::From::kSafetensors;
  if (name == "sharded") return Leg::From::kSharded;
  if (name == "bin") return Leg::From::kBin;
  if (name == "sharded_bin") return Leg::From::kShardedBin;
  return Leg::From::kMemory;
}

void parse_beams(const Json& value, Leg& leg, const std::filesystem::path& file, const std::string& pointer) {
  const Json& beams = value.at("beams");
  const bool is_exhaustive = beams.at("width") == "exhaustive";
  leg.beams = Input::Beams{is_exhaustive ? 0 : beams.at("width").get<int64_t>(), beams.at("steps").get<int64_t>()};
  for (const char* member : {"calls", "before", "free_running"})
    if (value.contains(member))
      throw InputError(where(file, pointer + "/" + member), "does not go with \"beams\"",
                       "beams start after one call of the whole prompt, and choose every token after it");
  if (!is_exhaustive) return;
  if (leg.beams->steps != 2)
    throw InputError(where(file, pointer + "/beams/steps"), "an exhaustive search takes 2 steps");
  if (leg.cache == CacheKind::kNone || leg.rows.size() != 1 || leg.rows[0].pad != 0)
    throw InputError(where(file, pointer), "an exhaustive search needs a cache and one row without padding");
}

Leg parse_leg(const Json& value, const std::filesystem::path& file, const std::string& pointer) {
  Leg leg;
  leg.name = value.at("name").get<std::string>();
  for (const Json& row : value.at("rows")) leg.rows.push_back(parse_row(row));
  leg.cache = parse_cache(value.value("cache", "none"));
  const Json calls = value.value("calls", Json::array({"rest"}));
  for (size_t i = 0; i < calls.size(); ++i) {
    leg.calls.push_back(parse_call(calls[i], file, fmt::format("{}/calls/{}", pointer, i)));
    if (leg.calls.back().kind != CallSize::Kind::kColumns && i + 1 < calls.size())
      throw InputError(where(file, fmt::format("{}/calls/{}", pointer, i)),
                       calls[i].dump() + " takes all that is left and can only stand last");
  }
  const bool is_one_call = leg.calls.size() == 1 && leg.calls[0].kind == CallSize::Kind::kRest;
  if (leg.cache == CacheKind::kNone && !is_one_call)
    throw InputError(where(file, pointer + "/calls"), "without a cache every call is a sequence of its own",
                     "leave calls out, or say \"cache\": \"dynamic\"");
  leg.forms = value.value("forms", std::map<std::string, std::string>{});
  leg.pad_token = value.value("pad_token", int64_t{0});
  leg.limit = value.value("limit", int64_t{0});
  if (leg.limit > 0 && leg.cache != CacheKind::kStatic)
    throw InputError(where(file, pointer + "/limit"), "goes with \"cache\": \"static\"");
  leg.from = parse_from(value.value("from", "memory"));
  leg.residency = value.value("residency", "resident") == "offloaded" ? Residency::kOffloaded : Residency::kResident;
  if (value.contains("before")) {
    const Json& before = value.at("before");
    leg.before = Leg::Before{before.at("input").get<std::string>(), before.value("length", int64_t{0}),
                             before.value("session", "same") == "same"};
  }
  leg.free_running = value.value("free_running", false);
  if (value.contains("beams")) parse_beams(value, leg, file, pointer);
  return leg;
}

std::vector<std::pair<std::string, std::string>> parse_agree(const Json& document, const char* member,
                                                             const std::vector<Leg>& legs,
                                                             const std::set<std::string>& names,
                                                             const std::filesystem::path& file) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const Json agree = document.value(member, Json::array());
  for (size_t i = 0; i < agree.size(); ++i) {
    const std::string pointer = where(file, fmt::format("/{}/{}", member, i));
    const auto [first, second] =
        pairs.emplace_back(agree[i].at(0).get<std::string>(), agree[i].at(1).get<std::string>());
    for (const std::string& name : {first, second})
      if (!names.count(name))
        throw InputError(pointer, "no leg is named '" + name + "'",
                         "nearest: " + nearest_list(name, {names.begin(), names.end()}));
    for (const Leg& leg : legs)
      if (leg.beams && (leg.name == first || leg.name == second))
        throw InputError(pointer, "leg '" + leg.name + "' has beams; it is compared with a whole run of what it found");
    if (first == second) throw InputError(pointer, "compares a leg with itself");
  }
  return pairs;
}

}  // namespace

Case parse_case(const Json& document, const std::filesystem::path& file, const std::string& id) {
  check_schema(document, "case.schema.json", file);
  Case result;
  result.id = id;
  result.file = file;
  const size_t slash = id.find('/'), dot = id.find('.', slash == std::string::npos ? 0 : slash);
  if (slash == std::string::npos || dot == std::string::npos || dot + 1 == id.size())
    throw InputError(file.string(), "the name of a case file is <aspect>.<variant>.json in its model's folder");
  result.model = id.substr(0, slash);
  result.aspect = id.substr(slash + 1, dot - slash - 1);
  result.variant = id.substr(dot + 1);
  if (std::find(std::begin(kAspects), std::end(kAspects), result.aspect) == std::end(kAspects))
    throw InputError(file.string(), "no aspect '" + result.aspect + "'",
                     "nearest: " + nearest_list(result.aspect, {std::begin(kAspects), std::end(kAspects)}));
  result.config = document.at("config").get<std::string>();
  result.tier = document.at("tier").get<std::string>();
  result.dtype = document.at("dtype").get<std::string>();
  result.why = document.at("why").get<std::string>();
  result.kind = kind_of(result.dtype);

  std::set<std::string> names;
  const Json& legs = document.at("legs");
  for (size_t i = 0; i < legs.size(); ++i) {
    const std::string pointer = fmt::format("/legs/{}", i);
    result.legs.push_back(parse_leg(legs[i], file, pointer));
    if (!names.insert(result.legs.back().name).second)
      throw InputError(where(file, pointer + "/name"), "a second leg is named '" + result.legs.back().name + "'");
  }
  result.agree = parse_agree(document, "agree", result.legs, names, file);
  result.agree_exactly = parse_agree(document, "agree_exactly", result.legs, names, file);
  result.quantization = document.value("quantization", "");
  result.unquantized = document.value("unquantized", std::vector<std::string>{});
  if (!result.quantization.empty()) {
    if (result.dtype != "float32")
      throw InputError(where(file, "/quantization"), "goes with dtype float32, not " + result.dtype,
                       "a subject computes in float32 on the dequantised weights");
    result.kind = result.quantization;
  } else if (!result.unquantized.empty()) {
    throw InputError(where(file, "/unquantized"), "goes with \"quantization\"");
  }
  if (document.contains("requires")) {
    result.needs_gpu = document.at("requires").value("gpu", false);
    result.needs_memory_bytes = document.at("requires").value("memory_bytes", int64_t{0});
  }
  result.original_defect = document.value("original_defect", Json());
  if (document.contains("bound"))
    result.bound = Case::BoundOverride{document.at("bound").at("factor").get<double>(),
                                       document.at("bound").at("reason").get<std::string>()};
  result.digest = sha256(canonical(document));
  return result;
}

Case read_case(const std::filesystem::path& file) {
  const Json document = read_json(file);
  const std::string name = file.filename().string();
  const std::string stem = name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
  return parse_case(document, file, std::filesystem::absolute(file).parent_path().filename().string() + "/" + stem);
}

}  // namespace assay

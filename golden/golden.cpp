#include "golden/golden.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cases/spec/digest.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "golden/kinds.hpp"
#include "golden/place.hpp"

namespace assay::golden {
namespace {

using Json = nlohmann::json;

Record parse_record(const Json& document, const Place& place) {
  Record record;
  record.name = document.at("name");
  record.shape = integers_of(document.at("shape"), place.below("shape"));
  record.positions = integers_of(Json::array({document.at("positions")}), place.below("positions")).front();
  const int64_t width = element_count(record.shape);
  if (document.contains("sample")) {
    const Place here = place.below("sample");
    record.sample = integers_of(document.at("sample"), here);
    for (size_t i = 0; i < record.sample.size(); ++i) {
      if (record.sample[i] >= width)
        here.below(i).refuse(
            fmt::format("element {} of a row of {}, {}", record.sample[i], width, to_string(record.shape)));
      if (i && record.sample[i] <= record.sample[i - 1])
        here.below(i).refuse(fmt::format("element {} after {}: not ascending", record.sample[i], record.sample[i - 1]));
    }
  }
  record.scale = number_of(document.at("scale"), place.below("scale"));
  record.is_sparse = document.value("sparse", false);
  record.norm = numbers_of(document, "norm", record.positions, "one a position", place);
  record.floor = numbers_of(document, "floor", record.positions, "one a position", place);
  record.norm_floor = numbers_of(document, "norm_floor", record.positions, "one a position", place);

  const Json& rows = document.at("values");
  const Place here = place.below("values");
  if (static_cast<int64_t>(rows.size()) != record.positions)
    here.refuse(fmt::format("holds {} rows, expected {}: one a position", rows.size(), record.positions));
  const auto columns = static_cast<size_t>(record.columns());
  for (size_t p = 0; p < rows.size(); ++p) {
    if (rows[p].size() != columns)
      here.below(p).refuse(fmt::format("holds {} values, expected {}: {}", rows[p].size(), columns,
                                       record.sample.empty() ? "one an element of the row, since there is no sample"
                                                             : "one an element of the sample"));
    for (size_t i = 0; i < columns; ++i) record.values.push_back(number_of(rows[p][i], here.below(p).below(i)));
  }
  return record;
}

std::vector<Record> parse_records(const Json& array, const Place& place) {
  std::vector<Record> records;
  std::set<std::string> names;
  for (size_t i = 0; i < array.size(); ++i) {
    records.push_back(parse_record(array[i], place.below(i)));
    if (!names.insert(records.back().name).second)
      place.below(i).below("name").refuse("\"" + records.back().name + "\" stands twice");
  }
  return records;
}

std::vector<StateRecord> parse_states(const Json& array, int64_t length, const Place& place) {
  std::vector<StateRecord> states;
  for (size_t i = 0; i < array.size(); ++i) {
    const Place here = place.below(i);
    StateRecord state{.cut = array[i].at("cut").get<int64_t>()};
    if (state.cut > length) here.below("cut").refuse(fmt::format("{} is beyond the {} tokens", state.cut, length));
    if (i && state.cut <= states.back().cut)
      here.below("cut").refuse(fmt::format("{} after {}: not ascending", state.cut, states.back().cut));
    state.states = parse_records(array[i].at("states"), here.below("states"));
    if (i && !std::equal(state.states.begin(), state.states.end(), states.front().states.begin(),
                         states.front().states.end(),
                         [](const Record& a, const Record& b) { return a.name == b.name && a.shape == b.shape; }))
      here.below("states").refuse("holds other states than the first cut");
    states.push_back(std::move(state));
  }
  return states;
}

BeamRecord parse_beams(const Json& document, const Place& place) {
  BeamRecord beams;
  const auto all = [](const Json& array, const Place& here) {
    std::vector<float> numbers;
    for (size_t i = 0; i < array.size(); ++i) numbers.push_back(number_of(array[i], here.below(i)));
    return numbers;
  };
  beams.floor = number_of(document.at("floor"), place.below("floor"));
  beams.scores = all(document.at("scores"), place.below("scores"));
  const Json &sequences = document.at("sequences"), &steps = document.at("steps");
  for (size_t i = 0; i < sequences.size(); ++i)
    beams.sequences.push_back(integers_of(sequences[i], place.below("sequences").below(i)));
  for (size_t s = 0; s < steps.size(); ++s) {
    const Place here = place.below("steps").below(s);
    beams.steps.push_back({integers_of(steps[s].at("sources"), here.below("sources")),
                           integers_of(steps[s].at("tokens"), here.below("tokens")),
                           all(steps[s].at("log_probs"), here.below("log_probs")),
                           number_of(steps[s].at("floor"), here.below("floor"))});
  }
  if (const std::string problem = beam_problem(beams); !problem.empty()) place.refuse(problem);
  return beams;
}

}  // namespace

const Record* Golden::probe(std::string_view name) const {
  for (const Record& record : probes)
    if (record.name == name) return &record;
  return nullptr;
}

const StateRecord* Golden::states_at(int64_t cut) const {
  for (const StateRecord& state : states)
    if (state.cut == cut) return &state;
  return nullptr;
}

std::string content_digest(nlohmann::json document) {
  if (document.is_object()) document.erase("content_digest");
  return sha256(canonical(document));
}

Golden parse_golden(const nlohmann::json& document, const std::filesystem::path& file) {
  check_schema(document, "golden.schema.json", file);
  const Place root{file, ""};
  if (const std::string digest = content_digest(document); digest != document.at("content_digest").get<std::string>())
    root.below("content_digest")
        .refuse("edited by hand: content digest differs; only `assay golden record` writes goldens",
                "record it again, or restore the committed file");

  Golden golden{.model = document.at("model"),
                .config = document.at("config"),
                .input = document.at("input"),
                .kind = document.at("kind"),
                .config_digest = document.at("config_digest"),
                .weight_digests = document.at("weight_digests"),
                .original = document.at("original")};
  golden.prompt = integers_of(document.at("prompt"), root.below("prompt"));
  golden.tokens = integers_of(document.at("tokens"), root.below("tokens"));
  const auto length = static_cast<int64_t>(golden.tokens.size());
  if (golden.prompt.size() > golden.tokens.size() ||
      !std::equal(golden.prompt.begin(), golden.prompt.end(), golden.tokens.begin()))
    root.below("tokens").refuse("do not start with the prompt");
  golden.gap = numbers_of(document, "gap", length, "one a token", root);

  const Place probes = root.below("probes");
  golden.probes = parse_records(document.at("probes"), probes);
  if (golden.probes.back().name != "logits")
    probes.below(golden.probes.size() - 1).below("name").refuse("the last probe must be \"logits\"");
  for (size_t i = 0; i < golden.probes.size(); ++i)
    if (golden.probes[i].positions != length)
      probes.below(i)
          .below("positions")
          .refuse(fmt::format("{} positions, but the run has {} tokens", golden.probes[i].positions, length));
  golden.is_logits_only = document.contains("record");
  if (golden.is_logits_only && golden.probes.size() != 1)
    probes.refuse("holds other probes than logits, though \"record\" says logits");
  golden.states = parse_states(document.at("states"), length, root.below("states"));
  if (document.contains("beams")) golden.beams = parse_beams(document.at("beams"), root.below("beams"));
  parse_kind(document, root, golden);
  return golden;
}

Golden read_golden(const std::filesystem::path& file) {
  Golden golden = parse_golden(read_json(file), file);
  const std::filesystem::path own = golden_file("", golden.model, golden.config, golden.input, golden.kind);
  const std::filesystem::path place = std::filesystem::absolute(file);
  if (place.filename() != own.filename() || place.parent_path().filename() != own.parent_path().filename())
    throw InputError(file.string(), "the file says it is " + golden.id(), "it must be named as the run it holds");
  return golden;
}

std::filesystem::path golden_file(const std::filesystem::path& root, const std::string& model,
                                  const std::string& config, const std::string& input, const std::string& kind) {
  return root / "golden" / "models" / model / (config + "." + input + "." + kind + ".json");
}

}  // namespace assay::golden

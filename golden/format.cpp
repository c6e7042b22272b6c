// The one text form of a golden.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cases/spec/json.hpp"
#include "golden/golden.hpp"
#include "golden/kinds.hpp"

namespace assay::golden {
namespace {

// Readers go by way of double. A zero keeps its sign only as a fraction ("-0" would read as an integer), and a text so
// near the middle of two floats that rounding twice misses gets all of its digits.
std::string number(float value) {
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  std::string text = print_number(value);
  if (std::isfinite(value) && static_cast<float>(std::stod(text)) != value) text = print_number(double{value});
  return text;
}
std::string number(int64_t value) { return std::to_string(value); }

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

template <class T>
std::string array(std::span<const T> values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) text += ",";
    text += number(values[i]);
  }
  return text + "]";
}
template <class T>
std::string array(const std::vector<T>& values) {
  return array(std::span<const T>(values));
}

// The members or items of an object or array, one a line, at a given depth.
class Block {
 public:
  Block(char open, char close, size_t depth)
      : text_(1, open), inner_(depth + 1, ' '), outer_(depth, ' '), close_(close) {}
  void item(const std::string& value) {
    text_ += (is_first_ ? "\n" : ",\n") + inner_ + value;
    is_first_ = false;
  }
  void member(const std::string& name, const std::string& value) { item(quoted(name) + ": " + value); }
  std::string finish() { return is_first_ ? text_ + close_ : text_ + "\n" + outer_ + close_; }

 private:
  std::string text_, inner_, outer_;
  char close_;
  bool is_first_ = true;
};

std::string format_record(const Record& record, size_t depth) {
  Block block('{', '}', depth);
  block.member("floor", array(record.floor));
  block.member("name", quoted(record.name));
  block.member("norm", array(record.norm));
  block.member("norm_floor", array(record.norm_floor));
  block.member("positions", number(record.positions));
  if (!record.sample.empty()) block.member("sample", array(record.sample));
  block.member("scale", number(record.scale));
  block.member("shape", array(record.shape));
  if (record.is_sparse) block.member("sparse", "true");
  Block values('[', ']', depth + 1);
  const auto columns = static_cast<size_t>(record.columns());
  for (size_t p = 0; p < static_cast<size_t>(record.positions); ++p)
    values.item(array(std::span(record.values).subspan(p * columns, columns)));
  block.member("values", values.finish());
  return block.finish();
}

std::string format_records(const std::vector<Record>& records, size_t depth) {
  Block block('[', ']', depth);
  for (const Record& record : records) block.item(format_record(record, depth + 1));
  return block.finish();
}

std::string format_states(const std::vector<StateRecord>& states, size_t depth) {
  Block block('[', ']', depth);
  for (const StateRecord& state : states) {
    Block one('{', '}', depth + 1);
    one.member("cut", number(state.cut));
    one.member("states", format_records(state.states, depth + 2));
    block.item(one.finish());
  }
  return block.finish();
}

std::string format_beams(const BeamRecord& beams) {
  Block block('{', '}', 1), sequences('[', ']', 2), steps('[', ']', 2);
  for (const std::vector<int64_t>& sequence : beams.sequences) sequences.item(array(sequence));
  for (const BeamStep& step : beams.steps)
    steps.item("{\"floor\": " + number(step.floor) + ", \"log_probs\": " + array(step.log_probs) +
               ", \"sources\": " + array(step.sources) + ", \"tokens\": " + array(step.tokens) + "}");
  block.member("floor", number(beams.floor));
  block.member("scores", array(beams.scores));
  block.member("sequences", sequences.finish());
  block.member("steps", steps.finish());
  return block.finish();
}

std::string texts(const std::vector<std::string>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) text += ",";
    text += quoted(values[i]);
  }
  return text + "]";
}

std::string format_errors(const std::vector<PrecisionError>& errors) {
  Block block('[', ']', 1);
  for (const PrecisionError& error : errors) {
    Block one('{', '}', 2);
    one.member("compute", quoted(error.compute));
    one.member("logits", array(error.logits));
    one.member("marked", array(error.marked));
    block.item(one.finish());
  }
  return block.finish();
}

std::string format_quantization(const Quantization& quantization, bool has_nested_scales) {
  Block block('{', '}', 1), weights('{', '}', 2);
  for (const auto& [name, weight] : quantization.weights) {
    Block one('{', '}', 3);
    if (!has_nested_scales) one.member("absmax", array(weight.absmax));
    if (has_nested_scales) one.member("absmax_codes", array(weight.absmax_codes));
    one.member("codes", texts(weight.codes));
    if (has_nested_scales) {
      one.member("nested_absmax", array(weight.nested_absmax));
      one.member("offset", number(weight.offset));
    }
    weights.member(name, one.finish());
  }
  block.member("unquantized", texts(quantization.unquantized));
  block.member("weights", weights.finish());
  return block.finish();
}

std::string format_with(const Golden& golden, const std::string& digest) {
  Block original('{', '}', 1), weights('{', '}', 1), block('{', '}', 0);
  for (const auto& [name, value] : golden.original.items()) original.member(name, value.dump());
  for (const auto& [name, value] : golden.weight_digests) weights.member(name, quoted(value));

  if (golden.beams) block.member("beams", format_beams(*golden.beams));
  block.member("config", quoted(golden.config));
  block.member("config_digest", quoted(golden.config_digest));
  block.member("content_digest", quoted(digest));
  if (!golden.errors.empty()) block.member("errors", format_errors(golden.errors));
  const Kind* kind = find_kind(golden.kind);
  if (kind && kind->is_rounded) block.member("float32_weights", texts(golden.float32_weights));
  block.member("gap", array(golden.gap));
  block.member("input", quoted(golden.input));
  block.member("kind", quoted(golden.kind));
  block.member("model", quoted(golden.model));
  block.member("original", original.finish());
  block.member("probes", format_records(golden.probes, 1));
  block.member("prompt", array(golden.prompt));
  if (golden.quantization)
    block.member("quantization", format_quantization(*golden.quantization, kind && kind->has_nested_scales));
  if (golden.is_logits_only) block.member("record", quoted("logits"));
  block.member("schema", quoted("assay.golden/1"));
  block.member("states", format_states(golden.states, 1));
  block.member("tokens", array(golden.tokens));
  block.member("weight_digests", weights.finish());
  return block.finish() + "\n";
}

}  // namespace

std::string format(const Golden& golden) {
  // The digest is of what a reader will see, not of what is in memory.
  const std::string text = format_with(golden, "");
  return format_with(golden, content_digest(nlohmann::json::parse(text)));
}

}  // namespace assay::golden

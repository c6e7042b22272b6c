#include "cases/spec/models/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/select.hpp"

namespace assay {

std::string FieldReader::where(const std::string& name) const {
  const std::string file = config_.file.empty() ? "config" : config_.file.string();
  return name.empty() ? file + " " + pointer_ : fmt::format("{} {}/{}", file, pointer_, name);
}

FieldReader FieldReader::section(const char* name) const {
  if (!has(name) || !value(name).is_object()) refuse(name, "an object of fields");
  return {config_, value(name), fmt::format("{}/{}", pointer_, name)};
}

bool FieldReader::has(const char* name) const {
  const auto found = fields_.find(name);
  return found != fields_.end() && !found->is_null();
}

bool FieldReader::is_null(const char* name) const {
  const auto found = fields_.find(name);
  return found != fields_.end() && found->is_null();
}

void FieldReader::refuse(const char* name, const std::string& expected) const {
  const std::string got = fields_.contains(name) ? fields_.at(name).dump() : "nothing";
  throw InputError(where(name), fmt::format("expected {}, got {}", expected, got));
}

int64_t FieldReader::size(const char* name, int64_t otherwise, int64_t least, int64_t most) const {
  if (!has(name)) return otherwise;
  const auto& value = fields_.at(name);
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  if (!value.is_number_integer()) refuse(name, expected);
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) refuse(name, expected);
  const auto number = value.get<int64_t>();
  if (number < least || number > most) refuse(name, expected);
  return number;
}

int64_t FieldReader::layers(int64_t otherwise) const {
  if (is_null("num_hidden_layers")) refuse("num_hidden_layers", "a whole number");
  return size("num_hidden_layers", otherwise, 1, kMostLayers);
}

double FieldReader::positive(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  const auto& value = fields_.at(name);
  if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
    refuse(name, "a finite number above 0");
  return value.get<double>();
}

double FieldReader::number(const char* name, double otherwise) const {
  if (!has(name)) return otherwise;
  const auto& value = fields_.at(name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(name, "a finite number");
  return value.get<double>();
}

std::vector<double> FieldReader::numbers(const char* name, std::vector<double> otherwise) const {
  if (!has(name)) return otherwise;
  const auto& list = fields_.at(name);
  const std::string expected = fmt::format("a list of {} finite numbers", otherwise.size());
  if (!list.is_array() || list.size() != otherwise.size()) refuse(name, expected);
  std::vector<double> found;
  for (const auto& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(name, expected);
    found.push_back(value.get<double>());
  }
  return found;
}

std::vector<int64_t> FieldReader::sizes(const char* name, int64_t least, int64_t most) const {
  std::vector<int64_t> found;
  if (!has(name)) return found;
  const auto& list = fields_.at(name);
  const std::string expected = fmt::format("a list of whole numbers from {} to {}", least, most);
  if (!list.is_array()) refuse(name, expected);
  for (const auto& value : list) {
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62))
      refuse(name, expected);
    const auto number = value.get<int64_t>();
    if (number < least || number > most) refuse(name, expected);
    found.push_back(number);
  }
  return found;
}

namespace {

std::string joined(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", word);
  return text;
}

bool is_one_of(const nlohmann::json& value, std::initializer_list<std::string_view> words) {
  return value.is_string() && std::find(words.begin(), words.end(), value.get<std::string>()) != words.end();
}

}  // namespace

std::string FieldReader::word(const char* name, std::string_view otherwise,
                              std::initializer_list<std::string_view> allowed) const {
  if (!has(name)) return std::string(otherwise);
  if (!is_one_of(fields_.at(name), allowed)) refuse(name, "one of " + joined(allowed));
  return fields_.at(name).get<std::string>();
}

std::vector<std::string> FieldReader::words(const char* name, int64_t count,
                                            std::initializer_list<std::string_view> allowed) const {
  std::vector<std::string> found;
  if (!has(name)) return found;
  const auto& list = fields_.at(name);
  const std::string length = count > 0 ? fmt::format("{} words", count) : "words";
  const std::string expected = fmt::format("a list of {}, each one of {}", length, joined(allowed));
  if (!list.is_array() || list.empty() || (count > 0 && static_cast<int64_t>(list.size()) != count))
    refuse(name, expected);
  for (const auto& value : list) {
    if (!is_one_of(value, allowed)) refuse(name, expected);
    found.push_back(value.get<std::string>());
  }
  return found;
}

bool FieldReader::flag(const char* name, bool otherwise) const {
  if (!has(name)) return otherwise;
  if (!fields_.at(name).is_boolean()) refuse(name, "true or false");
  return fields_.at(name).get<bool>();
}

std::pair<double, double> FieldReader::limits(const char* name, std::pair<double, double> otherwise) const {
  if (!has(name)) return otherwise;
  constexpr const char* kExpected = "[lo, hi] with 0 <= lo <= hi, hi a number or {\"__float__\": \"Infinity\"}";
  const auto& value = fields_.at(name);
  if (!value.is_array() || value.size() != 2) refuse(name, kExpected);
  const auto number = [&](const nlohmann::json& bound) {
    if (bound.is_number()) return bound.get<double>();
    const nlohmann::json& text =
        bound.is_object() && bound.size() == 1 && bound.contains("__float__") ? bound.at("__float__") : bound;
    if (text != "Infinity") refuse(name, kExpected);
    return std::numeric_limits<double>::infinity();
  };
  const std::pair<double, double> bounds(number(value[0]), number(value[1]));
  if (!(bounds.first >= 0 && bounds.first <= bounds.second) || std::isinf(bounds.first)) refuse(name, kExpected);
  return bounds;
}

int64_t FieldReader::expanded(int64_t hidden_size, double otherwise) const {
  const double product = positive("expand", otherwise) * static_cast<double>(hidden_size);
  if (!(product >= 1) || product > static_cast<double>(kLargestSize))
    refuse("expand", fmt::format("int(expand * hidden_size) from 1 to {}", kLargestSize));
  return static_cast<int64_t>(product);
}

namespace {

// Fields that no family reads, or not all of those that may have them: they are of the right kind all the same.
void check_unread(const FieldReader& read) {
  const auto check = [&](std::initializer_list<const char*> names, const char* expected, auto&& is_right) {
    for (const char* name : names)
      if (read.has(name) && !is_right(read.value(name))) read.refuse(name, expected);
  };
  const auto is_whole = [](const nlohmann::json& value) { return value.is_number_integer(); };
  const auto is_boolean = [](const nlohmann::json& value) { return value.is_boolean(); };
  const auto is_word = [](const nlohmann::json& value) { return value.is_string(); };
  const auto is_number = [](const nlohmann::json& value) {
    return value.is_number() && std::isfinite(value.get<double>());
  };
  check({"dtype", "torch_dtype", "transformers_version", "time_step_init_scheme"}, "a word", is_word);
  check({"mamba_ssm_dtype", "mamba_ssm_cache_dtype"}, "\"float32\", \"float16\" or \"bfloat16\"",
        [](const nlohmann::json& value) {
          return is_one_of(value, {"float32", "float16", "bfloat16"});
        });
  check({"use_cache", "output_router_logits"}, "true or false", is_boolean);
  check({"attention_dropout", "hidden_dropout", "initializer_range", "router_aux_loss_coef", "z_loss_coefficient",
         "time_step_floor", "time_step_min", "time_step_max", "time_step_scale"},
        "a finite number", is_number);
  check({"pad_token_id", "bos_token_id", "eos_token_id", "image_token_id", "video_token_id", "vision_start_token_id",
         "vision_end_token_id"},
        "a token, or a list of them", [&](const nlohmann::json& value) {
          return is_whole(value) || (value.is_array() && std::all_of(value.begin(), value.end(), is_whole));
        });
  for (const char* name : {"max_position_embeddings", "sliding_window"}) read.size(name, 1);
  read.size("num_logits_to_keep", 0, 0);
  for (const char* name : {"expand", "mlp_expansion_factor"}) read.positive(name, 1);
}

}  // namespace

void FieldReader::check_known(std::vector<std::string> own) const {
  own.insert(own.end(), {"model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "vocab_size",
                         "hidden_size", "num_hidden_layers", "tie_word_embeddings", "initializer_range", "use_cache",
                         "pad_token_id", "bos_token_id", "eos_token_id"});
  check_only(own);
  // Upstream leaves null to be derived in other fields, never in these.
  for (const char* name : {"vocab_size", "hidden_size"})
    if (is_null(name)) refuse(name, "a whole number");
}

void FieldReader::check_only(const std::vector<std::string>& names) const {
  for (const auto& [name, value] : fields_.items())
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(where(name), fmt::format("is not a field of {}", config_.model),
                       "nearest: " + nearest_list(name, names));
  check_unread(*this);
}

void FieldReader::check_word(const char* name, std::string_view only) const {
  if (has(name) && fields_.at(name) != only) refuse(name, fmt::format("\"{}\"", only));
}

void FieldReader::check_flags(std::initializer_list<const char*> names) const {
  for (const char* name : names) flag(name, false);
}

void FieldReader::check_intermediate_size(int64_t recomputed) const {
  if (has("intermediate_size") && fields_.at("intermediate_size") != recomputed)
    refuse("intermediate_size", fmt::format("int(expand * hidden_size) = {}", recomputed));
}

void FieldReader::check_elements(double outside_layers, double each_layer, int64_t layers) const {
  constexpr double kMost = 0x1p40;
  const double all = outside_layers + each_layer * static_cast<double>(layers);
  if (all > kMost)
    throw InputError(where(""), fmt::format("its sizes together make {:.3g} elements of weights and states", all),
                     fmt::format("at most {:.3g} make sense", kMost));
}

}  // namespace assay

#include <fmt/format.h>

#include <algorithm>

#include "cases/spec/checkpoint.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kWithoutNumbers[] = {
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "hidden_dropout",
    "mamba_dropout",
    "num_logits_to_keep",
    "output_attentions",
    "pad_token_id",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "use_mamba_kernels",
    "use_mambapy",
    "use_associative_scan",
    "output_hidden_states",
    "rescale_prenorm_residual",
    "output_router_logits",
    "router_aux_loss_coef",
};

// Files written by older releases hold the bare token Infinity, which is no JSON: it is quoted here.
std::string quoted_infinities(const std::string& text) {
  constexpr std::string_view kToken = "Infinity";
  std::string quoted;
  bool is_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (is_text && text[i] == '\\' && i + 1 < text.size()) {
      quoted += text[i++];
    } else if (text[i] == '"') {
      is_text = !is_text;
    } else if (!is_text && text.compare(i, kToken.size(), kToken) == 0) {
      quoted += '"' + std::string(kToken) + '"';
      i += kToken.size() - 1;
      continue;
    }
    quoted += text[i];
  }
  return quoted;
}

// One spelling for what may be spelled in several ways: layer types, infinity.
Json plain(const Json& value) {
  if (value == "mamba") return "linear_attention";
  if (value == "attention") return "full_attention";
  if (value.is_object() && value.size() == 1 && value.contains("__float__")) return value.at("__float__");
  if (!value.is_array()) return value;
  Json all = Json::array();
  for (const Json& element : value) all.push_back(plain(element));
  return all;
}

// The original works the value out, and saves what came of it; the tensors' shapes depend on it.
bool is_derived(const Json& value) { return value.is_null() || value == "auto"; }

struct Comparison {
  std::string config_file, file;

  void compare(const Json& ours, const Json& theirs, const std::string& pointer) const {
    for (const auto& [name, value] : ours.items()) {
      if (std::find(std::begin(kWithoutNumbers), std::end(kWithoutNumbers), name) != std::end(kWithoutNumbers))
        continue;
      const auto found = theirs.find(name);
      if (found == theirs.end() || is_derived(*found) || is_derived(value)) continue;
      const std::string place = pointer + "/" + name;
      if (value.is_object() && found->is_object() && !value.contains("__float__")) {
        compare(value, *found, place);
      } else if (plain(value) != plain(*found)) {
        throw InputError(file + " " + place,
                         fmt::format("is {}, and {} in {}", found->dump(), value.dump(), config_file),
                         "the config belongs to other weights");
      }
    }
  }
};

}  // namespace

void check_fields(const ModelConfig& config, const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return;
  const Json theirs = parse_json(quoted_infinities(read_file(file)), file);
  if (!theirs.is_object()) throw InputError(file.string(), "must be an object");

  const Comparison comparison{config.file.empty() ? "the config" : config.file.string(), file.string()};
  const auto is_nested = [](const Json& fields) {
    return fields.contains("text_config") && fields.at("text_config").is_object();
  };
  if (is_nested(config.fields) == is_nested(theirs)) return comparison.compare(config.fields, theirs, "");
  // The text model alone has another model_type than the whole.
  Json ours = is_nested(config.fields) ? config.fields.at("text_config") : config.fields;
  ours.erase("model_type");
  if (is_nested(theirs)) return comparison.compare(ours, theirs.at("text_config"), "/text_config");
  comparison.compare(ours, theirs, "");
}

}  // namespace assay

// The only file that includes valijson (14 s to compile). Its string replacement and std::regex, once inlined, set off
// these false alarms of GCC 12 and 13 in optimised and sanitizer builds.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wrestrict"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "cases/spec/embedded_schemas.hpp"
#include "cases/spec/error.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/select.hpp"

namespace assay {

namespace {

using Json = nlohmann::json;

struct LoadedSchema {
  Json document;
  valijson::Schema compiled;
};

const LoadedSchema& schema_named(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<LoadedSchema>, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) return *found->second;
  std::string known;
  for (const EmbeddedSchema* schema = kEmbeddedSchemas; schema->name; ++schema) {
    if (schema->name == name) {
      auto entry = std::make_unique<LoadedSchema>();
      entry->document = parse_json(schema->text, schema->name);
      valijson::SchemaParser parser;
      parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(entry->document), entry->compiled);
      return *loaded.emplace(std::string(name), std::move(entry)).first->second;
    }
    known += (known.empty() ? "" : ", ") + std::string(schema->name);
  }
  throw InputError("schema " + std::string(name), "is not built in", "built in: " + known);
}

const Json* resolved(const Json* node, const Json& root) {
  for (int hops = 0; node && node->is_object() && node->contains("$ref") && hops < 8; ++hops) {
    const std::string reference = node->at("$ref");
    if (reference.rfind("#/", 0) != 0) return nullptr;
    const Json::json_pointer target(reference.substr(1));
    node = root.contains(target) ? &root.at(target) : nullptr;
  }
  return node;
}

// The part of the schema that governs one member or item; null where it cannot be told (oneOf and the like).
const Json* below(const Json* node, const std::string& step, bool is_array, const Json& root) {
  if (!node || !node->is_object()) return nullptr;
  const Json* next = nullptr;
  if (is_array) {
    if (node->contains("items") && node->at("items").is_object()) next = &node->at("items");
  } else if (node->contains("properties") && node->at("properties").contains(step)) {
    next = &node->at("properties").at(step);
  } else if (node->contains("additionalProperties") && node->at("additionalProperties").is_object()) {
    next = &node->at("additionalProperties");
  }
  return resolved(next, root);
}

// std::regex goes a level of the stack deeper for every character, and valijson asks it of keys and of values.
void check_lengths(const Json& value, const Json* schema, const Json& root, const Json::json_pointer& pointer,
                   const std::filesystem::path& file) {
  constexpr size_t kLongest = 4096;
  const auto check = [&](const std::string& text) {
    if (text.size() > kLongest)
      throw InputError(file.string() + " " + (pointer.empty() ? "/" : pointer.to_string()),
                       fmt::format("holds a text of {} bytes, at most {} are read", text.size(), kLongest));
  };
  if (value.is_string() && (!schema || schema->contains("pattern"))) check(value.get_ref<const std::string&>());
  if (value.is_object())
    for (const auto& [name, member] : value.items()) {
      check(name);
      if (member.is_string() || member.is_structured())
        check_lengths(member, below(schema, name, false, root), root, pointer / name, file);
    }
  if (value.is_array()) {
    const Json* items = below(schema, "", true, root);
    for (size_t i = 0; i < value.size(); ++i)
      if (value[i].is_string() || value[i].is_structured()) check_lengths(value[i], items, root, pointer / i, file);
  }
}

struct Place {
  Json::json_pointer pointer;
  const Json* value;
  const Json* schema;
};

// valijson's context is "<root>", "[name]" or "[index]" ...
Place place_of(const std::vector<std::string>& context, const Json& document, const Json& schema) {
  Place place{Json::json_pointer(), &document, resolved(&schema, schema)};
  for (size_t i = 1; i < context.size(); ++i) {
    const std::string step = context[i].substr(1, context[i].size() - 2);
    const bool is_array = place.value->is_array();
    place.pointer /= step;
    if (!document.contains(place.pointer)) break;
    place.value = &document.at(place.pointer);
    place.schema = below(place.schema, step, is_array, schema);
  }
  return place;
}

std::string shown(const Json& value) {
  std::string text = value.dump();
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string kind_of(const Json& value) {
  if (value.is_number_integer()) return "integer";
  return value.type_name();
}

std::string quoted_list(const Json& values) {
  std::string text;
  for (const Json& value : values) text += (text.empty() ? "" : ", ") + value.dump();
  return text;
}

std::string type_list(const Json& type) {
  if (type.is_string()) return type.get<std::string>();
  std::string text;
  for (const Json& one : type) text += (text.empty() ? "" : " or ") + one.get<std::string>();
  return text;
}

std::string limits(const Json& schema) {
  std::string text;
  const auto add = [&](const char* key, const char* words) {
    if (schema.contains(key)) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, schema.at(key).dump());
  };
  add("minimum", "at least");
  add("exclusiveMinimum", "more than");
  add("maximum", "at most");
  add("exclusiveMaximum", "less than");
  add("minLength", "characters: at least");
  add("maxLength", "characters: at most");
  add("minItems", "items: at least");
  add("maxItems", "items: at most");
  add("minProperties", "members: at least");
  add("pattern", "text matching");
  return text;
}

[[noreturn]] void refuse(const Place& place, const std::string& description, const std::filesystem::path& file) {
  const auto where = [&](const Json::json_pointer& pointer) {
    return file.string() + " " + (pointer.empty() ? "/" : pointer.to_string());
  };
  const Json empty = Json::object();
  const Json& schema = place.schema && place.schema->is_object() ? *place.schema : empty;
  const Json& value = *place.value;

  // A misspelt member is both unknown and missing; its own name says more.
  if (value.is_object() && schema.value("additionalProperties", Json(true)) == Json(false)) {
    std::vector<std::string> known;
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : properties.items()) known.push_back(name);
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name) || schema.contains("patternProperties")) continue;
      const std::vector<std::string> close = nearest(name, known);
      std::string advice = close.empty() ? "" : "did you mean \"" + close.front() + "\"? ";
      advice += "allowed: " + quoted_list(Json(known));
      throw InputError(where(place.pointer / name), "there is no such property", advice);
    }
  }
  if (value.is_object() && schema.contains("required"))
    for (const Json& name : schema.at("required"))
      if (!value.contains(name.get<std::string>()))
        throw InputError(where(place.pointer), name.dump() + " is missing",
                         "required: " + quoted_list(schema.at("required")));
  if (schema.contains("type") && description.find("'type' constraint") != std::string::npos)
    throw InputError(where(place.pointer),
                     fmt::format("expected {}, got {} {}", type_list(schema.at("type")), kind_of(value), shown(value)));
  if (schema.contains("enum") && description.find("enum") != std::string::npos)
    throw InputError(where(place.pointer), fmt::format("{} is not allowed", shown(value)),
                     "expected one of: " + quoted_list(schema.at("enum")));
  if (schema.contains("const") && description.find("'const'") != std::string::npos)
    throw InputError(where(place.pointer), fmt::format("expected {}, got {}", shown(schema.at("const")), shown(value)));
  if (const std::string allowed = limits(schema); !allowed.empty())
    throw InputError(where(place.pointer), fmt::format("expected {}; got {}", allowed, shown(value)));
  throw InputError(where(place.pointer), description + " Got " + shown(value));
}

}  // namespace

void check_schema(const Json& document, std::string_view schema, const std::filesystem::path& file) {
  const LoadedSchema& loaded = schema_named(schema);
  check_lengths(document, resolved(&loaded.document, loaded.document), loaded.document, Json::json_pointer(), file);
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  if (validator.validate(loaded.compiled, target, &results)) return;
  // A failure deep inside is followed by one for each level that holds it: the deepest says what is wrong.
  const valijson::ValidationResults::Error* deepest = nullptr;
  for (const valijson::ValidationResults::Error& error : results)
    if (!deepest || error.context.size() > deepest->context.size()) deepest = &error;
  if (!deepest) throw InputError(file.string(), "does not follow " + std::string(schema));
  refuse(place_of(deepest->context, document, loaded.document), deepest->description, file);
}

}  // namespace assay

// A family's spec under test: its refusals, its table of weights, its table of probes.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"

namespace assay::testing {

using Json = nlohmann::json;

inline ModelConfig config_of(const std::string& model, Json fields, Json profile = Json::object()) {
  ModelConfig config;
  config.model = model;
  config.file = "folder/odd.config.json";
  config.fields = std::move(fields);
  config.profile = std::move(profile);
  return config;
}

inline Json with(Json fields, const std::string& field, Json value) {
  fields[field] = std::move(value);
  return fields;
}

// The check refuses `fields` with one field changed, in an InputError that points at `blamed` (the field itself where
// empty) and contains every part.
inline void expect_refused(const std::string& model, const Json& fields, const std::string& field, const Json& value,
                           std::initializer_list<std::string> parts, const std::string& blamed = "") {
  std::string text;
  try {
    model_spec(model).check(config_of(model, with(fields, field, value)));
  } catch (const InputError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("folder/odd.config.json /config/" + (blamed.empty() ? field : blamed)), std::string::npos)
      << field << " " << value << " gave: " << text;
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << field << ": " << part << " not in: " << text;
}

struct Row {
  std::string name;
  Shape shape;
};

// The rows in any order and no others.
inline void expect_weights(const ModelConfig& config, const std::vector<Row>& expected) {
  const auto table = model_spec(config.model).weights(config);
  EXPECT_EQ(table.size(), expected.size());
  for (const Row& row : expected) {
    bool is_there = false;
    for (const WeightSpec& spec : table) is_there = is_there || (spec.name == row.name && spec.shape == row.shape);
    EXPECT_TRUE(is_there) << row.name << " " << to_string(row.shape);
  }
}

// The rows in this order and no others, states from the first one that ends with "_state" or "_cache" on.
inline void expect_probes(const ModelConfig& config, const std::vector<Row>& expected) {
  const auto probes = model_spec(config.model).probes(config);
  ASSERT_EQ(probes.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string& name = expected[i].name;
    EXPECT_EQ(probes[i].name, name);
    EXPECT_EQ(probes[i].shape, expected[i].shape) << name;
    EXPECT_EQ(probes[i].is_state, name.ends_with("_state") || name.ends_with("_cache")) << name;
    const bool is_inside = name.starts_with("layers.");
    EXPECT_EQ(probes[i].layer, is_inside ? std::stoi(name.substr(7)) : -1) << name;
  }
}

}  // namespace assay::testing

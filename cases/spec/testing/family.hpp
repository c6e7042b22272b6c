// A family's spec under test: its refusals, its table of weights, its table of probes.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
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

// The check refuses the config in an InputError that points at `pointer` ("/config/...") and contains every part.
inline void expect_refusal(const ModelConfig& config, const std::string& pointer,
                           std::initializer_list<std::string> parts) {
  std::string text;
  try {
    model_spec(config.model).check(config);
  } catch (const InputError& error) {
    text = error.what();
  }
  EXPECT_NE(text.find("folder/odd.config.json " + pointer), std::string::npos) << pointer << " gave: " << text;
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << pointer << ": " << part << " not in: " << text;
}

// The same for `fields` with one field changed, where `blamed` is that field unless said.
inline void expect_refused(const std::string& model, const Json& fields, const std::string& field, const Json& value,
                           std::initializer_list<std::string> parts, const std::string& blamed = "") {
  SCOPED_TRACE(field + " " + value.dump());
  expect_refusal(config_of(model, with(fields, field, value)), "/config/" + (blamed.empty() ? field : blamed), parts);
}

struct Row {
  std::string name;
  Shape shape;
};

// The rows whose names `is_gone` does not hold for; it holds for some.
template <class IsGone>
std::vector<Row> rows_without(const std::vector<Row>& rows, const IsGone& is_gone) {
  std::vector<Row> kept;
  for (const Row& row : rows)
    if (!is_gone(row.name)) kept.push_back(row);
  EXPECT_LT(kept.size(), rows.size());
  return kept;
}

inline std::map<std::string, Shape> shapes_of(const ModelConfig& config) {
  std::map<std::string, Shape> shapes;
  for (const WeightSpec& weight : model_spec(config.model).weights(config))
    EXPECT_TRUE(shapes.emplace(weight.name, weight.shape).second) << weight.name;
  return shapes;
}

// The rows in any order and no others.
inline void expect_weights(const ModelConfig& config, const std::vector<Row>& expected) {
  const std::map<std::string, Shape> shapes = shapes_of(config);
  EXPECT_EQ(shapes.size(), expected.size());
  for (const Row& row : expected) {
    const auto found = shapes.find(row.name);
    ASSERT_NE(found, shapes.end()) << row.name;
    EXPECT_EQ(found->second, row.shape) << row.name;
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

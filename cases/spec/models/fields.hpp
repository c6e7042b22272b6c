// FieldReader: strict reading of the Hugging Face fields of a config. Every error names file, pointer, what was
// expected and what was found.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases/spec/model_config.hpp"

namespace assay {

class FieldReader {
 public:
  explicit FieldReader(const ModelConfig& config) : config_(config), fields_(config.fields) {}

  // The reader of the object under `name` (the text_config of a multimodal file). InputError if it is no object.
  FieldReader section(const char* name) const;

  // No released model comes near; twice the product of two such sizes still fits an int64.
  static constexpr int64_t kLargestSize = int64_t{1} << 30;
  // The tables of weights and probes have rows for each.
  static constexpr int64_t kMostLayers = 10'000;

  // A whole number from least to most; `otherwise` where the field is absent.
  int64_t size(const char* name, int64_t otherwise, int64_t least = 1, int64_t most = kLargestSize) const;
  // num_hidden_layers, from 1 to kMostLayers and never null; `otherwise` where it is absent.
  int64_t layers(int64_t otherwise) const;
  double positive(const char* name, double otherwise) const;
  bool flag(const char* name, bool otherwise) const;
  // [lo, hi] with lo <= hi; hi may be infinite: {"__float__": "Infinity"} or "Infinity".
  std::pair<double, double> limits(const char* name, std::pair<double, double> otherwise) const;
  // int(expand * hidden_size), as Python computes it.
  int64_t expanded(int64_t hidden_size, double otherwise) const;
  // A finite number of any sign.
  double number(const char* name, double otherwise) const;
  // `count` finite numbers, or `otherwise` where the field is absent.
  std::vector<double> numbers(const char* name, std::vector<double> otherwise) const;
  // `count` whole numbers from least to most each; an empty list where the field is absent.
  std::vector<int64_t> sizes(const char* name, int64_t least, int64_t most) const;
  // One of the words; `otherwise` where the field is absent.
  std::string word(const char* name, std::string_view otherwise, std::initializer_list<std::string_view> allowed) const;
  // A list of `count` of the words (any length from 1 where count is 0); empty where the field is absent.
  std::vector<std::string> words(const char* name, int64_t count,
                                 std::initializer_list<std::string_view> allowed) const;
  // There and not null: upstream writes null where a field keeps its derived value.
  bool has(const char* name) const;
  // There and null, where that means another value than the field's absence.
  bool is_null(const char* name) const;
  const nlohmann::json& value(const char* name) const { return fields_.at(name); }

  // InputError for a field that is neither one of `own` nor of those that every family's config.json may hold, with the
  // nearest names; for a null where upstream has none; for a field that changes no numbers and is of the wrong kind.
  void check_known(std::vector<std::string> own) const;
  // The same for an object that holds a model's fields and is no model itself: no names but these.
  void check_only(const std::vector<std::string>& names) const;
  // Fields that must have this value if they are there at all.
  void check_word(const char* name, std::string_view only) const;
  // A field that does not matter here, but must be a boolean if it is there at all.
  void check_flags(std::initializer_list<const char*> names) const;
  // intermediate_size, if it is there: a saved config may hold it, the original recomputes it, so another value lies.
  void check_intermediate_size(int64_t recomputed) const;
  // Elements of all weights and of one row's states, counted in float64 since it is a lie that has to be caught.
  // InputError above 2^40: the table of weights is never built for such a config.
  void check_elements(double outside_layers, double each_layer, int64_t layers) const;

  [[noreturn]] void refuse(const char* name, const std::string& expected) const;

 private:
  FieldReader(const ModelConfig& config, const nlohmann::json& fields, std::string pointer)
      : config_(config), fields_(fields), pointer_(std::move(pointer)) {}

  std::string where(const std::string& name) const;

  const ModelConfig& config_;
  const nlohmann::json& fields_;
  std::string pointer_ = "/config";
};

}  // namespace assay

// Attributes of op calls that stand for a block's shape, read alike by every subject. `in` is the subject's reader of a
// call: attribute(name, otherwise) and count_attribute(name, otherwise). cases/ops/README.md says what they mean.
#pragma once

#include <cmath>
#include <string>

#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/rotary.hpp"
#include "cases/spec/error.hpp"

namespace assay {

// One of `count` kinds, numbered from 0.
template <class In>
int kind_attribute(In& in, const std::string& op, const std::string& name, int count) {
  const double value = in.attribute(name, 0);
  if (!(value >= 0 && value < count) || value != std::floor(value))
    throw InputError("op " + op + ", " + name,
                     std::to_string(value) + " is none of the kinds 0 to " + std::to_string(count - 1));
  return static_cast<int>(value);
}

template <class In>
RotaryShape rotary_attributes(In& in, int64_t head_width) {
  RotaryShape shape;
  shape.width = in.count_attribute("width", head_width);
  if (shape.width % 2 != 0 || shape.width > head_width)
    throw InputError("op rotary, width",
                     std::to_string(shape.width) + " is odd or wider than the head, " + std::to_string(head_width));
  shape.theta = in.attribute("theta", shape.theta);
  shape.scaling = static_cast<RotaryShape::Scaling>(kind_attribute(in, "rotary", "scaling", 4));
  shape.factor = in.attribute("factor", shape.factor);
  shape.original_length = in.attribute("original_length", shape.original_length);
  shape.beta_fast = in.attribute("beta_fast", shape.beta_fast);
  shape.beta_slow = in.attribute("beta_slow", shape.beta_slow);
  shape.truncates = in.attribute("truncates", 1) != 0;
  shape.attention_factor = in.attribute("attention_factor", shape.attention_factor);
  shape.low_frequency_factor = in.attribute("low_frequency_factor", shape.low_frequency_factor);
  shape.high_frequency_factor = in.attribute("high_frequency_factor", shape.high_frequency_factor);
  return shape;
}

// The router's part of the shape.
template <class In>
ExpertsShape router_attributes(In& in, int64_t count) {
  ExpertsShape shape;
  shape.count = count;
  shape.router = static_cast<ExpertsShape::Router>(kind_attribute(in, "router", "router", 3));
  shape.chosen = in.count_attribute("chosen", 1);
  shape.normalises = in.attribute("normalises", 0) != 0;
  shape.epsilon = in.attribute("epsilon", 0);
  shape.scaling = in.attribute("scaling", 1);
  shape.groups = in.count_attribute("groups", 1);
  shape.chosen_groups = in.count_attribute("chosen_groups", 1);
  if (count % shape.groups != 0 || shape.chosen_groups > shape.groups ||
      shape.chosen > shape.chosen_groups * (count / shape.groups))
    throw InputError("op router, chosen", std::to_string(shape.chosen) + " of " + std::to_string(count) +
                                              " experts do not fit in " + std::to_string(shape.chosen_groups) + " of " +
                                              std::to_string(shape.groups) + " groups");
  return shape;
}

}  // namespace assay

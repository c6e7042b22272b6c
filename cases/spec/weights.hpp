// Synthetic weights: every tensor from Philox 4x32-10 with key = FNV-1a64(canonical name) xor seed, counter = element
// index / 4, word = element index % 4; u = (word >> 8) * 2^-24; value = lo + u * (hi - lo) in double, rounded once.
// cases/spec/weights.cpp holds the table of ranges, each with its reason. Python never draws: it reads what was
// exported.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "cases/spec/error.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay {

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);
uint64_t fnv1a64(std::string_view text);

HostTensor draw(const WeightSpec& spec, uint64_t seed);  // float32

// The config's weights whatever their recipe: drawn on demand, or read from a checkpoint directory in whichever layout
// its files have (cases/spec/checkpoint.hpp says what is checked).
std::shared_ptr<const WeightSource> open_weights(const ModelConfig& config);

// A tensor of a model's table read from source, as float32 (float16 and bfloat16 are widened). InputError naming the
// tensor when it is missing, has another shape or a non-finite element.
HostTensor read_weight(const WeightSpec& spec, const WeightSource& source);

// That source lacks the tensor: names it, the source's file and the nearest tensors there.
InputError missing_weight(const std::string& name, const WeightSource& source);

// InputError naming the first tensor of the table that source lacks, or of source that the table lacks, with the
// nearest names. lm_head.weight beside a tied embedding is ignored, as the original does.
void check_names(const std::vector<WeightSpec>& table, const WeightSource& source);

}  // namespace assay

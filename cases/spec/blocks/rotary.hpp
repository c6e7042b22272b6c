// RotaryShape: which lanes of a head are rotated, and by which frequencies (models.md B7).
//
//     f[i] = theta^(-2i / width), i < width / 2, then scaled;  angle = position * f[i], one float32 product
//     lanes i and i + width/2 of the first `width` lanes form a pair; lanes from `width` on pass unchanged
//
// Read from rope_parameters {rope_type, rope_theta, partial_rotary_factor, factor, ...}, or from the older rope_scaling
// {type or rope_type, factor, ...}, which wins where a config has both. rope_theta and partial_rotary_factor may also
// stand at the top level: the value in the dictionary wins over that one, and that over the family's default.
#pragma once

#include <cstdint>
#include <optional>

#include "cases/spec/models/fields.hpp"

namespace assay {

struct RotaryShape {
  enum class Scaling {
    kNone,
    kLinear,  // f / factor
    kYarn,    // between f and f / factor by a ramp over i; cos and sin times attention_factor
    kLlama3,  // between f and f / factor by the wavelength
  };
  int64_t width = 0;  // even; 0 = no rotation
  double theta = 10000;
  Scaling scaling = Scaling::kNone;
  double factor = 1;
  double original_length = 0;  // original_max_position_embeddings (yarn, llama3)
  double beta_fast = 32, beta_slow = 1;
  bool truncates = true;
  double attention_factor = 1;  // yarn: on cos and sin
  double low_frequency_factor = 1, high_frequency_factor = 4;

  bool is_on() const { return width > 0; }
};

// InputError naming the field: theta not above 1, a width that is odd or wider than the head, an unknown rope_type or
// setting, missing factors. fixed_partial: the family puts this in the place of the top-level partial_rotary_factor,
// whatever the config says there (bamba); one in the dictionary still wins.
RotaryShape read_rotary(const FieldReader& read, int64_t head_dim, double default_theta, double default_partial,
                        std::optional<double> fixed_partial = std::nullopt);

}  // namespace assay

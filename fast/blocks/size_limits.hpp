// Sizes that the kernels of a block do not take: UnsupportedError naming config, field and limit. Asked before any
// weight is read. The limits are those of the kernels' headers.
#pragma once

#include <string>

#include "cases/spec/blocks/attention.hpp"
#include "cases/spec/blocks/delta_mixer.hpp"
#include "cases/spec/blocks/experts.hpp"
#include "cases/spec/blocks/mamba2_mixer.hpp"
#include "cases/spec/blocks/mamba_mixer.hpp"
#include "cases/spec/blocks/short_conv.hpp"

namespace assay::fast {

void check_sizes(const std::string& config, const AttentionShape& shape);
void check_sizes(const std::string& config, const DeltaMixerShape& shape);
void check_sizes(const std::string& config, const ExpertsShape& shape);
void check_sizes(const std::string& config, const Mamba2MixerShape& shape);
void check_sizes(const std::string& config, const MambaMixerShape& shape);
void check_sizes(const std::string& config, const ShortConvShape& shape);

}  // namespace assay::fast

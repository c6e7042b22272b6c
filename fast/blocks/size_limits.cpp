#include "fast/blocks/size_limits.hpp"

#include "cases/spec/error.hpp"
#include "fast/kernels/attention.hpp"
#include "fast/kernels/gated_delta_rule.hpp"

namespace assay::fast {

namespace {

void at_most(const std::string& config, const char* field, int64_t value, int64_t limit, const char* kernel) {
  if (value > limit)
    throw UnsupportedError(config, std::string(field) + " " + std::to_string(value) + "; " + kernel + " takes 1 to " +
                                       std::to_string(limit));
}

void check_taps(const std::string& config, int64_t taps) { at_most(config, "conv_kernel", taps, 4, "causal_conv1d"); }

}  // namespace

void check_sizes(const std::string& config, const AttentionShape& shape) {
  at_most(config, "head_dim", shape.head_dim, kWidestHead, "attention");
}

void check_sizes(const std::string& config, const DeltaMixerShape& shape) {
  check_taps(config, shape.conv_kernel);
  at_most(config, "key_head_dim", shape.key_dim, kDeltaRuleKeyDim, "gated_delta_rule");
}

void check_sizes(const std::string& config, const ExpertsShape& shape) {
  at_most(config, "experts", shape.count, 1024, "router");
  at_most(config, "experts per token", shape.chosen, 64, "router");
}

void check_sizes(const std::string& config, const Mamba2MixerShape& shape) { check_taps(config, shape.conv_kernel); }

void check_sizes(const std::string& config, const MambaMixerShape& shape) {
  check_taps(config, shape.conv_kernel);
  at_most(config, "state_size", shape.state_size, 256, "selective_scan");
}

void check_sizes(const std::string& config, const ShortConvShape& shape) { check_taps(config, shape.conv_kernel); }

}  // namespace assay::fast

// A multiplier is the same as the weights it could be folded into: Falcon-H1's against a copy of its weights that were
// multiplied by hand.
#include <gtest/gtest.h>

#include <string>

#include "cases/spec/models/falcon_h1.hpp"
#include "reference/blocks/attention.hpp"
#include "reference/blocks/feed_forward.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/blocks/mamba2_mixer.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

constexpr const char* kConfig = "falcon_h1/awkward";
const std::string kLayer = "model.layers.0.";

// Rows [begin, end) of a tensor of layer 0 times factor.
void scale_rows(ChangedSource& source, const std::string& name, int64_t begin, int64_t end, double factor) {
  HostTensor tensor = source.read(kLayer + name);
  const int64_t columns = tensor.count() / tensor.shape().at(0);
  const auto elements = tensor.values<float>();
  for (int64_t i = begin * columns; i < end * columns; ++i)
    elements[static_cast<size_t>(i)] = static_cast<float>(elements[static_cast<size_t>(i)] * factor);
  source.replaced[kLayer + name] = std::move(tensor);
}

struct Case {
  ModelConfig config = repository_config(kConfig);
  FalconH1Fields fields = falcon_h1_fields(config);
  ChangedSource source{open_weights(config)};
  at::Tensor h = values({2, 6, fields.hidden_size}, 3).to(at::kFloat);
  Forms forms;
  Probes probes{/*capture=*/false};
  Pass pass{{}, {}, at::arange(6, at::kLong).expand({2, 6}), forms, probes};

  std::unique_ptr<WeightStore> original() const { return store_of(config, open_weights(config)); }
  std::unique_ptr<WeightStore> changed() const {
    return store_of(config, std::make_shared<const ChangedSource>(source));
  }
};

TEST(Multipliers, OfTheMixerFoldIntoItsProjection) {
  Case c;
  const Mamba2MixerShape shape = c.fields.mixer;
  Mamba2MixerShape plain = shape;
  plain.in_multiplier = 1;
  plain.multipliers = {1, 1, 1, 1, 1};
  // z 45, x 45, B 21, C 21, dt 9. The bias is not multiplied on the way in.
  scale_rows(c.source, "mamba.in_proj.weight", 0, 141, 0.93);
  const struct {
    int64_t begin, end;
    double factor;
  } parts[] = {{0, 45, 0.81}, {45, 90, 1.27}, {90, 111, -0.91}, {111, 132, 1.07}, {132, 141, 1.37}};
  for (const auto& part : parts)
    for (const char* name : {"mamba.in_proj.weight", "mamba.in_proj.bias"})
      scale_rows(c.source, name, part.begin, part.end, part.factor);

  LayerState state, folded_state;
  initial_state(state, 2, shape);
  initial_state(folded_state, 2, plain);
  const auto weights = c.original(), folded = c.changed();
  const at::Tensor y = mamba2_mixer(c.h, {*weights, kLayer + "mamba.", "mixer."}, shape, state, c.pass);
  const at::Tensor expected = mamba2_mixer(c.h, {*folded, kLayer + "mamba.", "mixer."}, plain, folded_state, c.pass);
  EXPECT_LT(difference(y, expected), 2e-5);
  EXPECT_LT(difference(state.conv, folded_state.conv), 1e-5);  // the window holds multiplied inputs
  EXPECT_LT(difference(state.ssm, folded_state.ssm), 1e-5);
}

TEST(Multipliers, OfTheKeysFoldIntoTheirProjection) {
  Case c;
  AttentionShape plain = c.fields.attention;
  plain.key_multiplier = 1;
  for (const char* name : {"self_attn.k_proj.weight", "self_attn.k_proj.bias"}) scale_rows(c.source, name, 0, 6, -1.19);

  LayerState state, folded_state;
  initial_state(state, 2, plain);
  initial_state(folded_state, 2, plain);
  const auto weights = c.original(), folded = c.changed();
  const at::Tensor y =
      attention_block(c.h, {*weights, kLayer + "self_attn.", "attn."}, c.fields.attention, state, c.pass);
  const at::Tensor expected =
      attention_block(c.h, {*folded, kLayer + "self_attn.", "attn."}, plain, folded_state, c.pass);
  EXPECT_LT(difference(y, expected), 1e-5);
  EXPECT_LT(difference(state.key, folded_state.key), 1e-5);
}

TEST(Multipliers, OfTheFeedForwardPartFoldIntoItsProjections) {
  Case c;
  FeedForwardShape plain = c.fields.feed_forward;
  plain.gate_multiplier = plain.down_multiplier = 1;
  for (const char* kind : {"weight", "bias"}) {
    scale_rows(c.source, std::string("feed_forward.gate_proj.") + kind, 0, 29, 1.43);
    scale_rows(c.source, std::string("feed_forward.down_proj.") + kind, 0, 15, 0.97);
  }
  const auto weights = c.original(), folded = c.changed();
  const at::Tensor y = feed_forward(c.h, {*weights, kLayer + "feed_forward.", "ff."}, c.fields.feed_forward, c.pass);
  EXPECT_LT(difference(y, feed_forward(c.h, {*folded, kLayer + "feed_forward.", "ff."}, plain, c.pass)), 1e-5);
}

}  // namespace
}  // namespace assay::reference

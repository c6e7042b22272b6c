#include "cases/spec/weight_groups.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "cases/spec/model_spec.hpp"

namespace assay {
namespace {

ModelConfig config_of(const std::string& id) {
  return read_config(std::filesystem::path(ASSAY_ROOT) / "cases" / "models" / (id + ".config.json"));
}

std::string outline(const std::string& id) {
  std::string text;
  for (const WeightGroup& group : weight_groups(config_of(id)))
    text += (text.empty() ? "" : ", ") + group.name + " x" + std::to_string(group.uses);
  return text;
}

TEST(WeightGroups, EveryWeightIsInOneGroup) {
  for (const ModelSpec& spec : model_specs())
    for (const char* name : {"/tiny", "/awkward"}) {
      const ModelConfig config = config_of(std::string(spec.name) + name);
      std::multiset<std::string> expected, got;
      int64_t elements = 0, counted = 0;
      for (const WeightSpec& weight : spec.weights(config)) {
        expected.insert(weight.name);
        elements += element_count(weight.shape);
      }
      for (const WeightGroup& group : weight_groups(config)) {
        got.insert(group.weights.begin(), group.weights.end());
        counted += group.elements;
      }
      EXPECT_EQ(got, expected) << config.id();
      EXPECT_EQ(counted, elements) << config.id();
    }
}

TEST(WeightGroups, LayersEndsAndSharedBlocks) {
  // zamba2/tiny: one block, called from layers 1 and 3; the head is the embedding.
  EXPECT_EQ(outline("zamba2/tiny"),
            "embedding x2, layers.0 x1, layers.1 x1, layers.1 shared block x2, layers.2 x1, layers.3 x1, head x1");
  // zamba2/awkward: two blocks for three hybrid layers, 0, 2 and 3, in turn.
  EXPECT_EQ(outline("zamba2/awkward"),
            "embedding x2, layers.0 x1, layers.0 shared block x2, layers.1 x1, layers.2 x1, layers.2 shared block x1, "
            "layers.3 x1, head x1");
  EXPECT_EQ(outline("nemotron_h/tiny").substr(0, 25), "embedding x1, layers.0 x1");
  const std::vector<WeightGroup> groups = weight_groups(config_of("nemotron_h/tiny"));
  EXPECT_EQ(groups.back().weights, (std::vector<std::string>{"backbone.norm_f.weight", "lm_head.weight"}));
}

}  // namespace
}  // namespace assay

#include "fast/blocks/expert_stacks.hpp"

#include <gtest/gtest.h>

namespace assay::fast {
namespace {

WeightSpec spec(std::string name, Shape shape) {
  WeightSpec spec;
  spec.name = std::move(name);
  spec.shape = std::move(shape);
  return spec;
}

TEST(ExpertStacks, PartsOfAnExpertLieSideBySideAndTheLastByItself) {
  std::vector<WeightSpec> table = {spec("layers.0.mlp.gate.weight", {11, 3})};
  for (int e = 0; e < 11; ++e) {
    const std::string expert = "layers.0.mlp.experts." + std::to_string(e) + ".";
    table.push_back(spec(expert + "gate_proj.weight", {2, 3}));
    table.push_back(spec(expert + "up_proj.weight", {2, 3}));
    table.push_back(spec(expert + "down_proj.weight", {3, 2}));
  }
  const ExpertStacks stacks(table);
  EXPECT_EQ(stacks.find("layers.0.mlp.gate.weight"), nullptr);
  EXPECT_EQ(stacks.size("layers.0.mlp.experts.first"), 132);
  EXPECT_EQ(stacks.size("layers.0.mlp.experts.down"), 66);
  EXPECT_EQ(stacks.find("layers.0.mlp.experts.0.up_proj.weight")->begin, 6);
  // Expert 10 stands behind 9, not behind 1 as its name does.
  const StackedPlace* gate = stacks.find("layers.0.mlp.experts.10.gate_proj.weight");
  EXPECT_EQ(gate->stack, "layers.0.mlp.experts.first");
  EXPECT_EQ(gate->begin, 120);
  EXPECT_EQ(stacks.find("layers.0.mlp.experts.10.down_proj.weight")->begin, 60);
}

TEST(ExpertStacks, LeavesAloneWhatIsStackedOrShared) {
  const ExpertStacks stacks({spec("layers.0.mlp.experts.gate_up_proj", {4, 6, 3}),
                             spec("layers.0.mlp.shared_experts.up_proj.weight", {2, 3}),
                             spec("layers.0.mlp.shared_expert.down_proj.weight", {3, 2})});
  EXPECT_EQ(stacks.find("layers.0.mlp.experts.gate_up_proj"), nullptr);
  EXPECT_EQ(stacks.find("layers.0.mlp.shared_experts.up_proj.weight"), nullptr);
  EXPECT_EQ(stacks.find("layers.0.mlp.shared_expert.down_proj.weight"), nullptr);
}

TEST(ExpertStacks, AnUngatedExpertHasOneFirstPart) {
  std::vector<WeightSpec> table;
  for (int e = 0; e < 2; ++e) {
    const std::string expert = "backbone.layers.1.mixer.experts." + std::to_string(e) + ".";
    table.push_back(spec(expert + "up_proj.weight", {4, 3}));
    table.push_back(spec(expert + "down_proj.weight", {3, 4}));
  }
  const ExpertStacks stacks(table);
  EXPECT_EQ(stacks.find("backbone.layers.1.mixer.experts.1.up_proj.weight")->begin, 12);
  EXPECT_EQ(stacks.size("backbone.layers.1.mixer.experts.first"), 24);
}

}  // namespace
}  // namespace assay::fast

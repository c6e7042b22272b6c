// Offloaded weights: equal to resident ones, two groups at a time, and errors that come while a model runs.
#include "reference/weight_store.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "cases/spec/export.hpp"
#include "cases/spec/json.hpp"
#include "cases/spec/model_spec.hpp"
#include "cases/spec/scratch_folder.hpp"
#include "cases/spec/weight_groups.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

const LoadOptions kOffloaded = {.residency = Residency::kOffloaded};
const Rows kPrompt = {{3, 17, 29, 5, 41}}, kStep = {{8}};

int64_t of_two_largest(const ModelConfig& config) {
  std::vector<int64_t> bytes;
  for (const WeightGroup& group : weight_groups(config)) bytes.push_back(4 * group.elements);
  std::ranges::sort(bytes, std::greater<>());
  return bytes[0] + bytes[1];
}

TEST(WeightStore, OffloadedEqualsResidentWithTwoGroupsAtATime) {
  for (const char* id : {"mamba/tiny", "nemotron_h/awkward", "zamba/tiny", "zamba2/awkward", "lfm2_moe/tiny"}) {
    const auto resident = load(id), offloaded = load(id, kOffloaded);
    const auto expected = resident->start({}), got = offloaded->start({});
    for (const Rows& call : {kPrompt, kStep, kStep})
      EXPECT_TRUE(at::equal(logits(*got, call), logits(*expected, call))) << id;
    const int64_t allowed = of_two_largest(repository_config(id));
    EXPECT_LE(offloaded->memory().peak_weight_bytes, allowed) << id;
    EXPECT_GT(offloaded->memory().peak_weight_bytes, 0) << id;
    EXPECT_GT(resident->memory().peak_weight_bytes, allowed) << id;
  }
}

TEST(WeightStore, WhoeverHoldsOnToATensorShows) {
  const ModelConfig config = repository_config("mamba/tiny");
  const auto count = std::make_shared<MemoryCount>();
  auto store = open_store(config, open_weights(config), kOffloaded, count);
  EXPECT_EQ(count->weight_bytes, 0);
  const auto bytes_of = [&](size_t group) { return 4 * weight_groups(config).at(group).elements; };
  at::Tensor held = store->at("backbone.layers.0.norm.weight");
  EXPECT_EQ(count->weight_bytes, bytes_of(1));
  store->at("backbone.layers.1.norm.weight");
  EXPECT_EQ(count->weight_bytes, bytes_of(1) + bytes_of(2));
  store->at("backbone.embeddings.weight");  // layers.0 goes, but for the tensor that is held
  EXPECT_EQ(count->weight_bytes, bytes_of(2) + bytes_of(0) + static_cast<int64_t>(held.nbytes()));
  held.reset();
  EXPECT_EQ(count->weight_bytes, bytes_of(2) + bytes_of(0));
  held = store->at("backbone.embeddings.weight");
  store.reset();
  EXPECT_EQ(count->weight_bytes, bytes_of(0));
  held.reset();
  EXPECT_EQ(count->weight_bytes, 0);
  EXPECT_EQ(count->peak_weight_bytes, bytes_of(1) + bytes_of(2));
}

// A session over a checkpoint's file, five columns in.
struct Running {
  explicit Running(const std::filesystem::path& folder) : file(folder / "model.safetensors") {
    ModelConfig config = repository_config("jamba/tiny");
    export_model(config, folder);
    bytes = read_file(file);
    config.weights.kind = WeightsRecipe::Kind::kCheckpoint;
    config.weights.directory = folder;
    model = ReferenceSubject().load(config, open_weights(config), kOffloaded);
    session = model->start({});
    logits(*session, kPrompt);
    states = session->states();
  }

  // The call fails so and changes nothing.
  void expect_refused(std::initializer_list<const char*> parts) {
    expect_parts(refusal<InputError>([&] { logits(*session, kStep); }), parts);
    EXPECT_EQ(session->length(), 5);
    const std::vector<NamedTensor> after = session->states();
    ASSERT_EQ(after.size(), states.size());
    for (size_t i = 0; i < states.size(); ++i)
      EXPECT_TRUE(at::equal(to_aten(after[i].value), to_aten(states[i].value))) << states[i].name;
  }

  std::filesystem::path file;
  std::string bytes;
  std::unique_ptr<Model> model;
  std::unique_ptr<Session> session;
  std::vector<NamedTensor> states;
};

TEST(WeightStore, AFileThatShrinksIsAnErrorAndTheSessionGoesOnWhenItIsBack) {
  const ScratchFolder folder;
  Running running(folder.path());
  const auto written = std::filesystem::last_write_time(running.file);
  std::filesystem::resize_file(running.file, running.bytes.size() / 2);
  running.expect_refused({"model.safetensors", "tensor 'model."});
  std::fstream(running.file, std::ios::in | std::ios::out | std::ios::binary) << running.bytes;
  std::filesystem::last_write_time(running.file, written);
  const auto fresh = load("jamba/tiny")->start({});
  logits(*fresh, kPrompt);
  EXPECT_TRUE(at::equal(logits(*running.session, kStep), logits(*fresh, kStep)));
}

TEST(WeightStore, AFileThatDisappearsIsAnError) {
  const ScratchFolder folder;
  Running running(folder.path());
  std::filesystem::remove(running.file);
  running.expect_refused({"model.safetensors", "tensor 'model.", "removed"});
}

TEST(WeightStore, WeightsAreCheckedWhenTheyAreRead) {
  const ModelConfig config = repository_config("mamba/tiny");
  const std::string norm = "backbone.layers.1.norm.weight";
  const auto source = std::make_shared<ChangedSource>(open_weights(config));
  const auto load_it = [&] { return ReferenceSubject().load(config, source, kOffloaded); };

  // Values are read when they are needed; after the source is mended the session goes on.
  source->replaced[norm] = source->read(norm);
  source->replaced[norm].values<float>()[5] = std::nanf("");
  const auto model = load_it();
  const auto session = model->start({}), fresh = load("mamba/tiny")->start({});
  expect_parts(refusal<InputError>([&] { logits(*session, kPrompt); }), {"layers.1.norm.weight", "[5]", "not finite"});
  expect_parts(refusal<InputError>([&] { model->weight(norm); }), {"layers.1.norm.weight", "not finite"});
  EXPECT_EQ(session->length(), 0);
  source->replaced.clear();
  EXPECT_TRUE(at::equal(logits(*session, kPrompt), logits(*fresh, kPrompt)));

  // Names and shapes are known before.
  source->replaced[norm] = HostTensor(DType::kF32, {23});
  expect_parts(refusal<InputError>(load_it), {"layers.1.norm.weight", "[23]", "[24]"});
  source->replaced.clear();
  source->removed.insert(norm);
  expect_parts(refusal<InputError>(load_it), {"layers.1.norm.weight", "missing"});
  source->removed.clear();
  source->replaced["backbone.layers.0.mixer.q_proj.weight"] = HostTensor(DType::kF32, {2});
  expect_parts(refusal<InputError>(load_it), {"mixer.q_proj.weight"});
}

}  // namespace
}  // namespace assay::reference

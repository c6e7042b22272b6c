// export: a config as a Hugging Face folder, in any layout that the family's files can have.
#pragma once

#include <filesystem>

#include "cases/spec/layouts.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

// Writes config.json, model.safetensors (float32, metadata format=pt) and assay.json, the manifest the recorder works
// from: {schema, model, config, original_class, config_digest, weights: {name: {shape, sha256}}, inputs: {name:
// {tokens, greedy, record, cuts, beams: {width, steps}}}, probes: [{name, shape, is_state, op, layer, state_heads,
// follows}]}. Weights there have their canonical names whatever the layout; cuts are the lengths at which states are
// recorded, beams is there where it is wanted. At most one tensor of the file and one of the table are in memory.
// HarnessError when the folder cannot be written, InputError for a layout that the config's files cannot have.
void export_model(const ModelConfig& config, const std::filesystem::path& directory, Layout layout = kReleased);

}  // namespace assay

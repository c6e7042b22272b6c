// export: a config as a Hugging Face folder, in any layout and file format that the family's files can have.
#pragma once

#include <cstdint>
#include <filesystem>

#include "cases/spec/layouts.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

struct ExportOptions {
  enum class Format { kSafetensors, kBin };

  Layout layout = kReleased;
  Format format = Format::kSafetensors;
  int64_t shard_bytes = 0;  // 0: one file. Else a shard holds at most so many bytes of values, or one larger tensor
};

// Writes config.json, the weights (float32) and assay.json, the manifest the recorder works from: {schema, model,
// config, original_class, config_digest, weights: {name: {shape, sha256}}, inputs: {name: {tokens, greedy, record,
// cuts, beams: {width, steps}}}, probes: [{name, shape, is_state, op, layer, state_heads, follows}]}. Weights there
// have their canonical names whatever the layout; cuts are the lengths at which states are recorded, beams is there
// where it is wanted. The weights are model.safetensors (metadata format=pt) or pytorch_model.bin; with shard_bytes
// model-00001-of-00003.safetensors or pytorch_model-00001-of-00003.bin, ... (one shard is 00001-of-00001) and the index
// beside them, written last. At most one tensor of the file and one of the table are in memory.
// HarnessError when the folder cannot be written; InputError for a layout that the config's files cannot have, a
// negative shard_bytes, the folder that the config's own weights are read from, and a folder whose other weights would
// be read instead of these (open_checkpoint's order).
void export_model(const ModelConfig& config, const std::filesystem::path& directory, const ExportOptions& options = {});

// The same in one .safetensors file.
void export_model(const ModelConfig& config, const std::filesystem::path& directory, Layout layout);

}  // namespace assay

// A checkpoint: a folder in Hugging Face layout. open_weights (weights.hpp) makes of it the model's canonical tensors:
// the files are opened, config.json is held against the config, names and shapes against the table of weights.
#pragma once

#include <filesystem>
#include <memory>

#include "cases/spec/model_config.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay {

// The tensors under the names they have in the files. The first that the folder has of model.safetensors, the shards
// that model.safetensors.index.json names, pytorch_model.bin, the shards of pytorch_model.bin.index.json: the
// original's order. Directories and headers are read here, values when they are asked for. InputError naming file and
// tensor for whatever a reader of the file could not trust (safetensors.hpp, torch_bin.hpp), and for an index that
// names an absent shard, misplaces a tensor or leaves one out.
std::shared_ptr<const WeightSource> open_checkpoint(const std::filesystem::path& directory);

// Holds config.json, if the folder has one, against the config: a field that both have must have the same value, else
// InputError naming it and both. Not compared: null and "auto" (the original derives the value), fields that change no
// numbers (dtype, architectures, use_cache, token ids, ...). Layer types may be spelled either way, and the fields of a
// text model may stand in text_config.
void check_fields(const ModelConfig& config, const std::filesystem::path& directory);

}  // namespace assay

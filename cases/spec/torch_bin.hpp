// Weights that torch.save wrote: pytorch_model.bin, a zip archive with a pickle (torch_archive.hpp, pickle.hpp).
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "cases/spec/safetensors.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay {

// Reads directory and pickle and holds every tensor against its storage; a tensor's values are read when asked for.
// Views of a storage and any strides are gathered into dense tensors; reading one takes the memory of the tensor and,
// where it is not dense in the file, of the range of the storage that it spans.
// InputError naming the file, and the tensor where there is one: what the two headers say; a storage that is missing or
// of another size than the pickle says; a tensor that reaches beyond its storage, or whose elements overlap (an
// expanded one: its shape could be of any size); two dtypes or sizes of one storage.
std::shared_ptr<const WeightSource> open_torch_bin(const std::filesystem::path& file);

// Writes what torch.load(weights_only=True) reads as a dict of tensors: protocol 2, a storage for every tensor, each
// aligned to 64 bytes, zip64 throughout. One tensor is in memory at a time, as in write_safetensors, whose errors
// these are too.
void write_torch_bin(const std::filesystem::path& file, const std::vector<TensorHeader>& headers,
                     const ReadTensor& read);

}  // namespace assay

// Layouts: the forms in which a family's released checkpoints hold the same tensors (models.md part 6). A model's table
// of weights has the released names; here are the other places where a file may hold them.
//
// A tensor is a row of pieces, each a contiguous range of a tensor of the file: one piece, the tensor itself, as
// released; one piece, an expert's rows of a fused tensor; or many, where the released tensor is the fused one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/model_spec.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay {

// What a layout does differently from the released one; a Layout is a union of them.
enum Trait : unsigned {
  kFused = 1,      // experts, or q, k, v, in one tensor
  kOneByOne = 2,   // every expert by itself, where the release has them fused
  kRenamed = 4,    // names of another library, or of the original in memory
  kCopies = 8,     // a shared block under every layer that calls it
  kTiedCopy = 16,  // lm_head.weight beside an embedding that is the head
  kExtras = 32,    // tensors that the original ignores
};
using Layout = unsigned;
inline constexpr Layout kReleased = 0;

// "released", "fused", "fused,extras".
std::string layout_name(Layout layout);
// InputError with the known names.
Layout layout_from_name(std::string_view name);
// The traits that a file of this config can have: no experts, nothing to fuse.
Layout config_traits(const ModelConfig& config);
// A line for each trait with the models that have it, for the help of a command.
std::string layouts_by_model();

struct Piece {
  std::string name;  // in the file
  Shape shape;       // of the whole tensor there
  int64_t begin = 0, count = 0;
};

struct Placement {
  Layout layout = kReleased;
  std::vector<Piece> pieces;  // in the order of the tensor's elements
};

// For every row of the table the places where a file may hold it; the released one first.
std::vector<std::vector<Placement>> placements(std::string_view model, const std::vector<WeightSpec>& table);

// A tensor that the original ignores when it loads this model: mtp.*, model.visual.*, *.rotary_emb.inv_freq where the
// family has them. (lm_head.weight beside a tied embedding is ignored too, by all of them.)
bool is_ignored(std::string_view model, std::string_view name);

// A tensor of a file in some layout: parts of canonical tensors one after the other.
struct FileTensor {
  struct Part {
    size_t row;  // of the table
    int64_t begin, count;
  };
  std::string name;
  Shape shape;
  std::vector<Part> parts;  // none: a tensor that is ignored, of any values
};

// What a file of the layout holds. InputError naming the traits that the config's files cannot have.
std::vector<FileTensor> file_tensors(const ModelConfig& config, Layout layout);

// The canonical tensors, read from whichever layout the source has; checked here by name and shape. InputError naming
// tensor and file: missing or unexpected (with the nearest names), held only in part, or of another shape than the
// config's; and when read, several copies of one tensor that differ.
std::shared_ptr<const WeightSource> canonical_source(const ModelConfig& config,
                                                     std::shared_ptr<const WeightSource> source);

}  // namespace assay

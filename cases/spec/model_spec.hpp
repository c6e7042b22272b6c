// ModelSpec: what Assay knows about a family without computing anything: its fields and their rules, its weights, its
// probes, its ops. One row a model, listed in cases/spec/models.def; a row lives in cases/spec/models/<model>.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "cases/spec/model_config.hpp"

namespace assay {

// What a tensor does decides the range that synthetic weights are drawn from; cases/spec/weights.cpp has the table of
// ranges and the reason for each.
enum class Role {
  kEmbedding,
  kNorm,       // near 1
  kZeroNorm,   // near 0: the norm multiplies by 1 + weight
  kGatedNorm,  // near 1
  kInProj,
  kOutProj,
  kXProj,   // Mamba-1: dt, B and C from x
  kDtProj,  // Mamba-1
  kDtBias,  // softplus of it lies between 0.02 and 1
  kALog,    // slow and fast decay
  kSkip,    // D
  kConv,
  kConvBias,
  kLinearBias,
  kQueryKey,       // q_proj and k_proj: scores peaked enough for a wrong key to show
  kRouter,         // [E, H]
  kSelectionBias,  // [E], added to router scores for the choice only
  kAdapter,        // two in a row multiply each other
  kHead,
};

struct WeightSpec {
  std::string name;  // canonical: as in the released checkpoint
  Shape shape;
  Role role;
  int64_t fan_in = 1;  // elements that one output sums over; scales the range of projections
  // Rows [begin, end) of the first dimension multiplied by scale: groups of unlike scale.
  struct RowScale {
    int64_t begin, end;
    double scale;
  };
  std::vector<RowScale> row_scales;
  // The original keeps it in float32 when the model is loaded in 16 bit.
  bool keeps_float32 = false;
};

struct ProbeSpec {
  std::string name;  // "layers.0.mixer.conv1d"
  Shape shape;       // after [B, L] for a sequence probe, after [B] for a state
  bool is_state = false;
  std::string op;  // the op whose output this is: "causal_conv1d", "linear", ...; a fault in it is caught here first
  int64_t layer = -1;  // -1 outside the layers
  // A state's floor is kept for each of its leading heads; 1 where the state has none.
  int64_t state_heads = 1;
  // A state that grows by a column a token (keys and values): the sequence probe that its columns repeat. Its shape is
  // that of one column [heads, width]; a subject returns [B, heads, T, width] with T columns, padding included. No
  // golden records it: column t of a row is judged by the golden's probe at position t.
  std::string follows = {};
  // Most elements may rightly be zero (router weights, a squared ReLU): not a sign of an empty answer.
  bool is_sparse = false;
};

struct ModelSpec {
  std::string_view name;            // "mamba2"
  std::string_view original_class;  // "Mamba2ForCausalLM"
  // Checks the fields, InputError naming the field. Called by read_config.
  void (*check)(const ModelConfig& config);
  // Every tensor of the checkpoint, in file order.
  std::vector<WeightSpec> (*weights)(const ModelConfig& config);
  // Sequence probes in order of computation, then states layer by layer.
  std::vector<ProbeSpec> (*probes)(const ModelConfig& config);
  // Ops that a forward pass must run; an accelerated subject that launched no kernel of one of them is FALLBACK.
  std::vector<std::string> (*ops)(const ModelConfig& config);
  int64_t (*vocabulary)(const ModelConfig& config);
};

std::span<const ModelSpec> model_specs();
const ModelSpec& model_spec(std::string_view name);  // InputError with the nearest names

}  // namespace assay

// The table of layouts: which family's files differ from the released ones, and how (models.md part 6, and the mapping
// of names in transformers 5.24.0). To accept another form of file, add a row.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "cases/spec/layouts.hpp"

namespace assay::layouts {

// Experts, as ".experts.{e}.{gate,up,down}.weight" or fused over e as ".experts.gate_up_proj" [E, 2F, X], gate rows
// first (".experts.up_proj" [E, F, X] without a gate), and ".experts.down_proj" [E, X, F].
struct ExpertNames {
  std::string_view model, gate, up, down;
  bool is_released_fused;
};
inline constexpr ExpertNames kExperts[] = {
    {"jamba", "gate_proj", "up_proj", "down_proj", false},
    {"lfm2_moe", "w1", "w3", "w2", false},
    {"nemotron_h", "", "up_proj", "down_proj", false},
    {"qwen3_next", "gate_proj", "up_proj", "down_proj", false},
    {"qwen3_5_moe", "gate_proj", "up_proj", "down_proj", true},
};

// Applied one after the other. With a leading dot: wherever it stands in the name; without: at its start.
using Replacements = std::vector<std::pair<std::string_view, std::string_view>>;
struct Renaming {
  std::string_view model;
  Replacements replacements;
};
inline const std::vector<Renaming>& renamings() {
  static const std::vector<Renaming> kAll = {
      {"mamba", {{"backbone.embeddings.", "backbone.embedding."}}},  // mamba_ssm
      {"mamba2", {{"backbone.embeddings.", "backbone.embedding."}}},
      {"nemotron_h", {{"backbone.", "model."}}},  // the original in memory
      {"nemotron_h", {{"backbone.embeddings.", "backbone.embedding."}}},
      {"granitemoehybrid",  // the original in memory
       {{".block_sparse_moe.input_linear.weight", ".block_sparse_moe.experts.gate_up_proj"},
        {".block_sparse_moe.output_linear.weight", ".block_sparse_moe.experts.down_proj"},
        {".block_sparse_moe.router.layer.weight", ".block_sparse_moe.router.weight"}}},
      // The text part of a multimodal file; the config decides which of the two is the release's.
      {"qwen3_5", {{"model.language_model.", "model."}}},
      {"qwen3_5", {{"model.", "model.language_model."}}},
      {"qwen3_5_moe", {{"model.language_model.", "model."}}},
      {"qwen3_5_moe", {{"model.", "model.language_model."}}},
      {"bamba",  // mamba_ssm
       {{"model.", "backbone."},
        {"backbone.embed_tokens.", "backbone.embedding."},
        {"backbone.final_layernorm.", "backbone.norm_f."},
        {".input_layernorm.", ".norm."},
        {".pre_ff_layernorm.", ".norm2."},
        {".mamba.", ".mixer."},
        {".self_attn.o_proj.", ".mixer.out_proj."},
        {".feed_forward.down_proj.", ".mlp.fc2."}}},
  };
  return kAll;
}

// Rows of several tensors in one, under the names of the model's renaming: q, k, v; up before gate.
struct RowFusion {
  std::string_view model;
  std::vector<std::string_view> members;
  std::string_view fused;
};
inline const std::vector<RowFusion>& row_fusions() {
  static const std::vector<RowFusion> kAll = {
      {"bamba", {".self_attn.q_proj.", ".self_attn.k_proj.", ".self_attn.v_proj."}, ".mixer.in_proj."},
      {"bamba", {".feed_forward.up_proj.", ".feed_forward.gate_proj."}, ".mlp.fc1."},
  };
  return kAll;
}

// A block that several layers call; the release has it under the first of them.
struct SharedBlock {
  std::string_view model, part;
};
inline constexpr SharedBlock kShared[] = {{"zamba", ".shared_transf."}, {"zamba2", ".shared_transformer."}};

// With a leading dot: the end of the name; without: its start. `sample` is what an export writes.
struct Ignored {
  std::string_view model, pattern, sample;
};
inline constexpr std::string_view kFrequencies = ".rotary_emb.inv_freq", kFrequency = "model.rotary_emb.inv_freq";
inline constexpr Ignored kIgnored[] = {
    {"bamba", kFrequencies, kFrequency},
    {"falcon_h1", kFrequencies, kFrequency},
    {"granitemoehybrid", kFrequencies, kFrequency},
    {"lfm2", kFrequencies, kFrequency},
    {"lfm2_moe", kFrequencies, kFrequency},
    {"nemotron_h", "mtp.", "mtp.norm.weight"},
    {"qwen3_next", "mtp.", "mtp.norm.weight"},
    {"qwen3_next", kFrequencies, kFrequency},
    {"qwen3_5", "mtp.", "mtp.norm.weight"},
    {"qwen3_5", "model.visual.", "model.visual.pos_embed.weight"},
    {"qwen3_5", kFrequencies, kFrequency},
    {"qwen3_5_moe", "mtp.", "mtp.norm.weight"},
    {"qwen3_5_moe", "model.visual.", "model.visual.pos_embed.weight"},
    {"qwen3_5_moe", kFrequencies, kFrequency},
    {"zamba2", kFrequencies, kFrequency},
};

inline constexpr std::pair<Trait, std::string_view> kTraits[] = {
    {kFused, "fused"},   {kOneByOne, "one_by_one"}, {kRenamed, "renamed"},
    {kCopies, "copies"}, {kTiedCopy, "tied_copy"},  {kExtras, "extras"},
};

}  // namespace assay::layouts

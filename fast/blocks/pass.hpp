// Pass: one forward call on its way through the blocks: where it computes, what it was asked for, and the states of
// each layer. Rows times columns is T: activations are [T, width], row b * L + t.
//
// A pass may be recorded into a graph and replayed with other columns: what differs from step to step is then on the
// device (tokens, positions, masks, past_on_device), and no block waits for the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fast/blocks/probes.hpp"
#include "fast/blocks/sequence_ops.hpp"
#include "fast/blocks/weights.hpp"
#include "fast/device/context.hpp"
#include "fast/device/tensor.hpp"

namespace assay::fast {

// What a layer carries from call to call; null what it does not have, everything in a session without a cache.
struct LayerState {
  float* conv = nullptr;   // [B, C, K]
  float* ssm = nullptr;    // [B, I, N] or [B, Nh, P, N]
  float* delta = nullptr;  // [B, Hv, dk, dv]
  float* key = nullptr;    // [B, nkv, capacity, hd], the columns so far
  float* value = nullptr;  // [B, nkv, capacity, hd]
  int64_t capacity = 0;
};

// The form of each op that has some: that of this call, or the choice where a block decides by its sizes.
struct PassForms {
  SequenceForm causal_conv1d = SequenceForm::kSequence;
  SequenceForm short_conv = SequenceForm::kSequence;
  SequenceForm selective_scan = SequenceForm::kSequence;
  SequenceForm ssd = SequenceForm::kSequence;
  SequenceForm gated_delta_rule = SequenceForm::kSequence;
  FormChoice attention = FormChoice::kByCall;  // prefill, decode
  FormChoice experts = FormChoice::kByCall;    // grouped, gemv
};

struct Pass {
  Context& context;
  Arena& scratch;
  Probes& probes;
  int64_t rows = 0;                    // B
  int64_t columns = 0;                 // L
  const int64_t* tokens = nullptr;     // [B, L]
  const int64_t* positions = nullptr;  // [B, L]: real tokens before this one; 0 at padding
  // Row b at b * stride. Null: no padding among them.
  const uint8_t* mask = nullptr;  // [B, L], the new columns
  int64_t mask_stride = 0;
  const uint8_t* seen_mask = nullptr;  // [B, P + L], every column so far
  int64_t seen_mask_stride = 0;
  bool is_warm = false;                     // states hold earlier columns
  int64_t past = 0;                         // P
  const int64_t* past_on_device = nullptr;  // P, in place of `past`
  PassForms forms;
  std::vector<LayerState> states;  // one a layer

  int64_t tokens_in_all() const { return rows * columns; }
  // [T, width], dense, from scratch.
  Matrix buffer(int64_t width, const std::string& label) {
    return as_matrix(allocate<float>(scratch, {tokens_in_all(), width}, label), width);
  }
};

// y [T, out] = x weight^T + bias; with accumulate, y += that. Few rows go through linear_gemv, others through cuBLASLt.
void project(Pass& pass, const Matrix& x, const Weight& weight, const Weight& bias, const Matrix& y,
             bool accumulate = false);
// Zeroes the rows of padded columns in place; x is dense. Nothing where the pass has no mask.
void mask_padding(Pass& pass, const Matrix& x);
// y = scale * x; y may be x.
void scale(Pass& pass, const Matrix& x, double scale, const Matrix& y);
// y = residual + scale * x; y may be either.
void add_scaled(Pass& pass, const Matrix& x, double scale, const Matrix& residual, const Matrix& y);
// y = x + residual, all dense; y may be either.
void add(Pass& pass, const Matrix& x, const Matrix& residual, const Matrix& y);

}  // namespace assay::fast

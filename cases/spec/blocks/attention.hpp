// AttentionShape: grouped-query causal attention and what the families put round it (models.md B8).
//
//     q, k, v = projections (zamba2: + adapters);  q, k = head norms;  k *= key_multiplier;  rotary;  into the cache
//     out_proj(softmax(scale q k^T) v [* sigmoid(gate)])
//
// weights  {q,k,v}_proj, out_proj (each with bias where it has one), q and k norms [head_dim] under the family's names
// probes   q [nq, hd], k [nkv, hd] as they enter the scores, v [nkv, hd], attention [nq, hd], gated [nq, hd] with an
//          output gate, out_proj [H]; states k_cache and v_cache, which follow k and v
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cases/spec/blocks/rotary.hpp"
#include "cases/spec/blocks/tables.hpp"
#include "cases/spec/models/fields.hpp"

namespace assay {

struct AttentionShape {
  enum class HeadNorm { kNone, kPlain, kZeroCentred };
  int64_t in_width = 0;     // H; 2 H in a shared block
  int64_t hidden_size = 0;  // width of out_proj's output
  int64_t heads = 0;        // nq
  int64_t kv_heads = 0;     // nkv; query head j reads j / (nq / nkv)
  int64_t head_dim = 0;     // hd
  double scale = 0;
  bool has_bias = false;  // q, k, v and out
  HeadNorm head_norm = HeadNorm::kNone;
  double epsilon = 0;            // of the head norms
  bool has_output_gate = false;  // q_proj's rows then alternate head by head: hd of the query, hd of the gate
  double key_multiplier = 1;
  RotaryShape rotary;
  int64_t adapter_rank = 0;  // zamba2: linear_{q,k,v}_adapter_list.{ordinal}.{0,1}; 0 = none
  std::string out_name = "o_proj", q_norm_name = "q_norm", k_norm_name = "k_norm";

  int64_t width() const { return heads * head_dim; }
};

// From the fields that many families name alike: num_attention_heads, num_key_value_heads (null = as many as there are
// query heads), head_dim (null = hidden_size / heads), attention_bias; scale head_dim^-1/2. Without rotary and head
// norms. InputError naming the field that does not fit the others.
AttentionShape read_grouped_attention(const FieldReader& read, int64_t hidden_size, int64_t default_heads,
                                      std::optional<int64_t> default_kv_heads = std::nullopt);

// Elements of the weights, in float64 (FieldReader::check_elements).
double elements_of(const AttentionShape& shape);

// `prefix` ends with a dot: "model.layers.0.self_attn.". Adapters are described by describe_adapters, call site by call
// site.
void describe_weights(WeightTable& table, const std::string& prefix, const AttentionShape& shape);
void describe_adapters(WeightTable& table, const std::string& prefix, int64_t ordinal, const AttentionShape& shape);
// `probe` ends with a dot: "layers.0.attn.".
void describe_probes(ProbeTable& table, const std::string& probe, int64_t layer, const AttentionShape& shape);

}  // namespace assay

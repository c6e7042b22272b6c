// ModelCost: what one forward call of a model must move and compute at least, counted from the tables of its weights
// and states. A call that is faster than the memory allows says that the count is wrong.
#pragma once

#include <cstdint>

#include "cases/spec/model_config.hpp"

namespace assay::bench {

struct ModelCost {
  // float32: every weight once, a shared block once a call of it, of an embedding the rows looked up, of E experts
  // those that the tokens can reach: min(E, tokens * k).
  double weight_bytes = 0;
  double state_bytes = 0;  // recurrent states read and written; keys and values of the past read, new ones written
  double flops = 0;        // the products of tokens with weights; no scan, no attention

  double bytes() const { return weight_bytes + state_bytes; }
};

// `columns` new columns of `rows` rows behind `past` ones in a cache. Logits are computed for every column.
ModelCost model_cost(const ModelConfig& config, int64_t rows, int64_t columns, int64_t past);

}  // namespace assay::bench

// Trace: what one call of a session computed, in order of computation.
//
// probes   sequence probes, [B, L, ...] float32, named by the model's probe table (cases/spec/model_spec.hpp), in the
//          order they were computed; the last one is "logits" [B, L, V]. With capture off only "logits" is there.
// Positions that a mask marks as padding hold whatever the subject computed; nobody compares them.
#pragma once

#include <string_view>
#include <vector>

#include "cases/spec/host_tensor.hpp"

namespace assay {

struct Trace {
  std::vector<NamedTensor> probes;

  const HostTensor* find(std::string_view name) const {
    for (const NamedTensor& probe : probes)
      if (probe.name == name) return &probe.value;
    return nullptr;
  }
};

}  // namespace assay

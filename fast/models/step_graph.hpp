// StepGraph: one new column through a static cache as a replay of a captured CUDA graph.
//
// Captured once for each kind of step (probes or only logits; padding among the new columns; padding among all) at its
// first call. What differs between steps lies in buffers of the graph's own that are written before a replay: tokens,
// positions, masks, the number of columns so far. The kernels are those of the eager call with the same operands, so
// that the results are equal bit for bit.
//
// A capture that fails leaves the states as they were; the session then computes the step eagerly, and kernels() of
// that call does not name the graph. After two failures of a kind of step it is not tried again.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cases/spec/subject.hpp"
#include "fast/blocks/pass.hpp"
#include "fast/device/arena.hpp"
#include "fast/kernels/kernel_id.hpp"
#include "fast/models/network.hpp"

namespace assay::fast {

inline constexpr std::string_view kStepGraphId = kernel_id<"step_graph_replay", float>;

class StepGraph {
 public:
  // limit: columns of the cache. context and network outlive it.
  StepGraph(Context& context, const Network& network, int64_t rows, int64_t limit);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  // The step of a call that has been checked, behind `past` >= 1 columns; states and forms are those of every step.
  // Empty: the capture failed, nothing has been computed. MemoryError as it comes.
  std::optional<Trace> run(const Call& call, int64_t past, const std::vector<LayerState>& states,
                           const PassForms& forms);
  // Of the last run that had a trace.
  const std::vector<std::string>& kernels() const { return kernels_; }
  // What that run wrote to, for the caller to check.
  void add_arenas(std::vector<const Arena*>& to) const;

 private:
  struct Kind {
    bool has_capture, has_mask, has_seen_mask;
    auto operator<=>(const Kind&) const = default;
  };
  struct Captured;

  void write_inputs(const Call& call, int64_t past);
  Pass pass_of(const Kind& kind, Arena& scratch, Probes& probes) const;
  bool capture(const Kind& kind, const std::vector<LayerState>& states, const PassForms& forms, Captured& into);

  Context& context_;
  const Network& network_;
  int64_t rows_, limit_;
  Arena inputs_;
  int64_t* numbers_ = nullptr;  // tokens [B], positions [B], the columns so far
  uint8_t* mask_ = nullptr;     // [B]
  uint8_t* seen_ = nullptr;     // [B, limit], 1 behind the padding, also where no column is yet
  std::vector<int64_t> seen_padding_;
  std::vector<int64_t> numbers_host_;
  std::vector<uint8_t> mask_host_, seen_host_;
  std::map<Kind, std::unique_ptr<Captured>> captured_;
  const Captured* replayed_ = nullptr;
  std::map<Kind, int> failures_;
  std::vector<std::string> kernels_;
};

}  // namespace assay::fast

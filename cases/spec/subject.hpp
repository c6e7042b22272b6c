// Subject: an implementation under test, as the runners see it. `reference` and `fast` are known through this header
// only, and a third engine becomes a subject by shipping a shared library that exports one function:
//
//     extern "C" assay::Subject* assay_open_subject();    // caller owns the result; built against this header's
//     version
//
//     assay run '*' --subject path/to/libengine.so
//
// Everything a subject cannot do it either leaves out of Capabilities (the runner then skips by name) or refuses with
// UnsupportedError. Bad weights and lying configs are InputError naming the tensor or field. Allocation failures are
// MemoryError with sizes. Calls are made from one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cases/spec/host_tensor.hpp"
#include "cases/spec/model_config.hpp"
#include "cases/spec/trace.hpp"
#include "cases/spec/weight_source.hpp"

namespace assay {

inline constexpr int kSubjectVersion = 2;

enum class CacheKind {
  kNone,     // every call is a whole sequence; states() is empty
  kDynamic,  // grows with the sequence
  kStatic,   // preallocated for SessionOptions::limit columns; addresses never change
};

enum class Residency {
  kResident,   // all weights read at load
  kOffloaded,  // each layer read from the source when it is needed and dropped after
};

struct Capabilities {
  std::string name;  // "reference"; stands in rows and in ctest names
  // "cpu", "NVIDIA H200 sm_90". "none: why" where the machine has none: every case is SKIP(no_gpu). "failing: why"
  // where it is there and does not start: cases run and say so themselves.
  std::string device;
  std::vector<std::string> versions;  // "torch 1.13.1", "cuda 13.0": printed in the header of a run
  std::vector<std::string> models;
  std::vector<DType> compute_dtypes;  // dtypes it computes in; float32 alone means float32 bounds everywhere
  std::vector<DType> weight_dtypes;   // dtypes it can hold weights in
  std::vector<CacheKind> caches;
  std::vector<Residency> residencies;
  // op -> the forms it can be told to use, the default first: {"ssd", {"chunked", "recurrent"}}
  std::map<std::string, std::vector<std::string>> forms;
  bool can_reorder = false;       // Session::reorder (beams)
  bool can_crop = false;          // Session::crop
  bool can_quantize_nf4 = false;  // LoadOptions::quantization "nf4" / "nf4dq"
  // Says that own kernels ran: each call's kernels() must then name one for each op of the model, or the row is
  // FALLBACK.
  bool is_accelerated = false;
};

struct LoadOptions {
  DType compute = DType::kF32;
  DType weights = DType::kF32;         // weights are rounded to this when read
  std::string quantization;            // "", "nf4", "nf4dq" (double quantisation)
  std::vector<std::string> quantized;  // canonical names of the weights to quantise; every other one is kept
  Residency residency = Residency::kResident;
};

struct SessionOptions {
  int64_t rows = 1;  // B
  CacheKind cache = CacheKind::kDynamic;
  int64_t limit = 0;                         // columns; kStatic only
  std::map<std::string, std::string> forms;  // op -> form; ops not named use their default
};

// One forward call: L new columns for each of the B rows, after the P columns already in the cache.
struct Call {
  HostTensor tokens;  // int64 [B, L], each in [0, V): otherwise InputError naming row and column
  // uint8 [B, P + L], 1 = real, 0 = left padding; absent = no padding. Positions count real tokens.
  HostTensor mask;
  bool capture = true;  // fill Trace::probes with every probe, not only "logits"
};

struct MemoryUse {
  int64_t allocations = 0;  // device (or counted host) allocations since load
  int64_t current_bytes = 0;
  int64_t peak_bytes = 0;
  int64_t peak_weight_bytes = 0;  // most weight bytes resident at one time
};

// Where a static cache keeps one state.
struct StateAddress {
  std::string name;  // as in states()
  uintptr_t address = 0;
};

// A batch of rows and the caches and states that belong to it.
class Session {
 public:
  virtual ~Session() = default;
  // Prefill, warm multi-token call and cached step are all this: what it is follows from the cache and L.
  virtual Trace forward(const Call& call) = 0;
  // States after the last call, [B, ...] float32, named as in the probe table ("layers.0.mixer.conv_state").
  virtual std::vector<NamedTensor> states() const = 0;
  virtual int64_t length() const = 0;                        // P: columns seen so far
  virtual void reset() = 0;                                  // as new: the next request sees no trace of the last
  virtual void reorder(const std::vector<int64_t>& source);  // row b becomes the old row source[b]
  virtual void crop(int64_t columns);                        // forget all but the first columns
  // kStatic: where each state lies; the same after every call and reset. Empty for other caches.
  virtual std::vector<StateAddress> state_addresses() const { return {}; }
  // kStatic: allocations made for caches and states since start; constant after the first step.
  virtual int64_t cache_allocations() const { return 0; }
  // Ids of the kernels launched by the last forward(), each once: "ssd_chunked_f32@sm_90". Empty on a CPU.
  virtual std::vector<std::string> kernels() const { return {}; }
};

// A config with its weights loaded.
class Model {
 public:
  virtual ~Model() = default;
  virtual std::unique_ptr<Session> start(const SessionOptions& options) = 0;
  // A weight as the model holds it, under its canonical name, as float32 (dequantised where it is quantised).
  virtual HostTensor weight(const std::string& name) const = 0;
  // NF4 parts of a quantised weight, as bitsandbytes saves them; empty if it is not quantised.
  //   codes  uint8 [ceil(n / 2)], two a byte, the first element in the high four bits
  //   absmax float32 [blocks of 64] ("nf4") or uint8 [blocks of 64] ("nf4dq")
  //   nested_absmax float32 [blocks of 256 absmax], offset float32 [1] ("nf4dq" only)
  virtual std::vector<NamedTensor> quantized(const std::string& /*name*/) const { return {}; }
  virtual MemoryUse memory() const { return {}; }
};

// One op by itself: inputs and outputs by the names in the op's contract (cases/ops/README.md lists them).
// A subject that computes in float32 gets float32; the reference also takes float64, for the floor.
struct OpCall {
  std::string op;                            // "ssd"
  std::string form;                          // "" = default
  std::vector<NamedTensor> inputs;           // an input that may be null is left out
  std::map<std::string, double> attributes;  // "chunk_size", "epsilon", "dt_min" ...

  const HostTensor* input(std::string_view name) const;     // nullptr if left out
  const HostTensor& required(std::string_view name) const;  // InputError naming op and input
  double attribute(std::string_view name, double otherwise) const;
};

struct OpResult {
  std::vector<NamedTensor> outputs;
  std::vector<std::string> kernels;
};

struct OpTiming {
  std::vector<double> time_us;  // one entry a timed launch, caches flushed between
  double bytes = 0;             // each input read once, each output written once
  double flops = 0;             // 0 where bytes are the limit
  std::vector<std::string> kernels;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual const Capabilities& capabilities() const = 0;
  // Reads what it needs from source; missing, unexpected, mis-shaped or non-finite tensors are InputError naming them.
  virtual std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                                      const LoadOptions& options) = 0;
  virtual OpResult run_op(const OpCall& call);                    // default: UnsupportedError naming the op
  virtual OpTiming time_op(const OpCall& call, int repetitions);  // default: UnsupportedError
};

using OpenSubject = Subject* (*)();

}  // namespace assay

// Written once in a subject's library.
#define ASSAY_EXPORT_SUBJECT(Type)                                                                                 \
  extern "C" __attribute__((visibility("default"))) int assay_subject_version() { return assay::kSubjectVersion; } \
  extern "C" __attribute__((visibility("default"))) assay::Subject* assay_open_subject() { return new Type(); }

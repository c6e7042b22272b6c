// A third party's engine, as small as one can be: Mamba-1 by plain loops in double, one token after another. It knows
// nothing of Assay but cases/spec, so a run of it proves that an engine joins without a change in the runners.
//
// ASSAY_TINY_FAULT plants what a run must survive or notice. "crash@2": only in calls of two rows.
//   crash hang throw oom   what the process does in a call
//   skip                   D is dropped                       nan      a NaN in the second layer's output
//   missing                the probe norm_f is not returned   shape    logits lack their last column
//   stale                  reset() keeps the scan state
//   unordered              reorder() does nothing             half_ordered   it leaves the second layer's scan state
//   deaf                   every token is read as token 0     fallback   says it is accelerated, names no kernel
//   open                   opening it takes for ever
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "cases/spec/error.hpp"
#include "cases/spec/models/mamba.hpp"
#include "cases/spec/subject.hpp"

namespace {

using namespace assay;
using Vector = std::vector<double>;

bool has_fault(const std::string& fault, int64_t rows) {
  const char* text = std::getenv("ASSAY_TINY_FAULT");
  if (!text) return false;
  return text == fault || text == fault + "@" + std::to_string(rows);
}

double silu(double x) { return x / (1 + std::exp(-x)); }
double softplus(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

struct Weights {
  MambaFields f;
  std::map<std::string, Vector> tensors;
  const Vector& operator[](const std::string& name) const { return tensors.at("backbone." + name); }
  bool has(const std::string& name) const { return tensors.contains("backbone." + name); }
};

// y = weight x + bias; weight [out, in], row-major.
Vector linear(const Vector& weight, const Vector& x, const Vector* bias = nullptr) {
  Vector y(weight.size() / x.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = bias ? (*bias)[i] : 0;
    for (size_t j = 0; j < x.size(); ++j) y[i] += weight[i * x.size() + j] * x[j];
  }
  return y;
}

Vector rms_norm(const Vector& weight, const Vector& x, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Vector y(x.size());
  const double scale = 1 / std::sqrt(squares / static_cast<double>(x.size()) + epsilon);
  for (size_t i = 0; i < x.size(); ++i) y[i] = weight[i] * x[i] * scale;
  return y;
}

// The states of one row: of each layer the last K inputs of the convolution [I, K] and the scan's state [I, N].
struct RowState {
  std::vector<Vector> conv, ssm;
};

using Probe = std::pair<std::string, Vector>;

class TinySession : public Session {
 public:
  TinySession(const Weights& weights, const SessionOptions& options) : w_(weights), options_(options) { clear(false); }

  Trace forward(const Call& call) override {
    const int64_t rows = call.tokens.shape()[0], columns = call.tokens.shape()[1];
    misbehave(rows);
    if (options_.cache == CacheKind::kNone) clear(false);
    Trace trace;
    for (int64_t b = 0; b < rows; ++b)
      for (int64_t t = 0; t < columns; ++t) {
        const int64_t all = call.mask.absent() ? 0 : call.mask.shape()[1];
        const bool is_padding = all > 0 && call.mask.values<uint8_t>()[static_cast<size_t>(b * all + length_ + t)] == 0;
        int64_t token = call.tokens.values<int64_t>()[static_cast<size_t>(b * columns + t)];
        if (token < 0 || token >= w_.f.vocab_size)
          throw InputError("tokens", "row " + std::to_string(b) + " column " + std::to_string(t) + ": token " +
                                         std::to_string(token) + " is not in the vocabulary");
        if (has_fault("deaf", rows)) token = 0;
        // Padding is not there at all: it neither reads nor writes a state.
        if (!is_padding) store(trace, step(rows_[static_cast<size_t>(b)], token, rows), rows, columns, b, t);
      }
    if (trace.probes.empty()) {  // padding only: the shapes are still owed, the values are nobody's
      RowState scratch = rows_[0];
      store(trace, step(scratch, 0, rows), rows, columns, 0, 0);
    }
    length_ += columns;
    if (!call.capture) trace.probes.erase(trace.probes.begin(), trace.probes.end() - 1);
    if (has_fault("missing", rows))
      std::erase_if(trace.probes, [](const NamedTensor& probe) { return probe.name == "norm_f"; });
    if (has_fault("shape", rows))
      trace.probes.back().value = HostTensor(DType::kF32, {rows, columns, w_.f.vocab_size - 1});
    return trace;
  }

  std::vector<NamedTensor> states() const override {
    std::vector<NamedTensor> result;
    if (options_.cache == CacheKind::kNone) return result;
    for (size_t l = 0; l < static_cast<size_t>(w_.f.num_hidden_layers); ++l) {
      const std::string mixer = "layers." + std::to_string(l) + ".mixer.";
      result.push_back({mixer + "conv_state", gather(l, true, {w_.f.intermediate_size, w_.f.conv_kernel})});
      result.push_back({mixer + "ssm_state", gather(l, false, {w_.f.intermediate_size, w_.f.state_size})});
    }
    return result;
  }

  int64_t length() const override { return length_; }
  void reorder(const std::vector<int64_t>& source) override {
    const std::vector<RowState> old = rows_;
    for (size_t b = 0; b < source.size(); ++b) {
      const RowState& from = old[static_cast<size_t>(source[b])];
      if (has_fault("unordered", options_.rows)) continue;
      rows_[b].conv = from.conv;
      rows_[b].ssm[0] = from.ssm[0];
      if (!has_fault("half_ordered", options_.rows)) rows_[b].ssm[1] = from.ssm[1];
    }
  }
  void reset() override { clear(has_fault("stale", options_.rows)); }

 private:
  void clear(bool keeps_ssm) {
    const auto I = static_cast<size_t>(w_.f.intermediate_size);
    rows_.resize(static_cast<size_t>(options_.rows));
    for (RowState& row : rows_) {
      row.conv.assign(static_cast<size_t>(w_.f.num_hidden_layers), Vector(I * static_cast<size_t>(w_.f.conv_kernel)));
      if (!keeps_ssm)
        row.ssm.assign(static_cast<size_t>(w_.f.num_hidden_layers), Vector(I * static_cast<size_t>(w_.f.state_size)));
    }
    length_ = 0;
  }

  static void misbehave(int64_t rows) {
    if (has_fault("crash", rows)) std::abort();
    while (has_fault("hang", rows)) sleep(1);
    if (has_fault("throw", rows)) throw InputError("tiny", "was told to throw");
    if (has_fault("oom", rows)) throw MemoryError("tiny", "was told to be out of memory: 1 of 0 bytes");
  }

  std::vector<Probe> step(RowState& row, int64_t token, int64_t rows) {
    const MambaFields& f = w_.f;
    const auto H = static_cast<size_t>(f.hidden_size), I = static_cast<size_t>(f.intermediate_size);
    const auto N = static_cast<size_t>(f.state_size), K = static_cast<size_t>(f.conv_kernel);
    const auto R = static_cast<size_t>(f.time_step_rank);
    std::vector<Probe> probes;
    const Vector& table = w_["embeddings.weight"];
    const auto at = table.begin() + token * f.hidden_size;
    Vector h(at, at + f.hidden_size);
    probes.emplace_back("embed", h);
    for (size_t l = 0; l < static_cast<size_t>(f.num_hidden_layers); ++l) {
      const std::string layer = "layers." + std::to_string(l) + ".", mixer = layer + "mixer.";
      const auto bias = [&](const std::string& name) { return w_.has(mixer + name) ? &w_[mixer + name] : nullptr; };
      const Vector u = rms_norm(w_[layer + "norm.weight"], h, f.layer_norm_epsilon);
      const Vector xz = linear(w_[mixer + "in_proj.weight"], u, bias("in_proj.bias"));
      Vector &conv = row.conv[l], &ssm = row.ssm[l];
      Vector x(I), y(I), gated(I);
      for (size_t i = 0; i < I; ++i) {
        std::rotate(conv.begin() + static_cast<ptrdiff_t>(i * K), conv.begin() + static_cast<ptrdiff_t>(i * K + 1),
                    conv.begin() + static_cast<ptrdiff_t>(i * K + K));
        conv[i * K + K - 1] = xz[i];
        double sum = bias("conv1d.bias") ? (*bias("conv1d.bias"))[i] : 0;
        for (size_t k = 0; k < K; ++k) sum += w_[mixer + "conv1d.weight"][i * K + k] * conv[i * K + k];
        x[i] = silu(sum);
      }
      const Vector parts = linear(w_[mixer + "x_proj.weight"], x);
      Vector dt = linear(w_[mixer + "dt_proj.weight"], Vector(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(R)),
                         &w_[mixer + "dt_proj.bias"]);
      for (double& value : dt) value = softplus(value);
      for (size_t i = 0; i < I; ++i) {
        y[i] = has_fault("skip", rows) ? 0 : w_[mixer + "D"][i] * x[i];
        for (size_t n = 0; n < N; ++n) {
          double& s = ssm[i * N + n];
          s = std::exp(-dt[i] * std::exp(w_[mixer + "A_log"][i * N + n])) * s + dt[i] * parts[R + n] * x[i];
          y[i] += parts[R + N + n] * s;
        }
        gated[i] = y[i] * silu(xz[I + i]);
      }
      const Vector out = linear(w_[mixer + "out_proj.weight"], gated, bias("out_proj.bias"));
      for (size_t i = 0; i < H; ++i) h[i] += out[i];
      if (l == 1 && has_fault("nan", rows)) h[0] = std::numeric_limits<double>::quiet_NaN();
      probes.insert(probes.end(), {{layer + "norm", u},
                                   {mixer + "in_proj", xz},
                                   {mixer + "conv1d", x},
                                   {mixer + "x_proj", parts},
                                   {mixer + "dt", dt},
                                   {mixer + "scan", y},
                                   {mixer + "gate", gated},
                                   {mixer + "out_proj", out},
                                   {layer + "out", h}});
    }
    probes.emplace_back("norm_f", rms_norm(w_["norm_f.weight"], h, f.layer_norm_epsilon));
    const bool is_tied = !w_.tensors.contains("lm_head.weight");
    probes.emplace_back("logits", linear(is_tied ? table : w_.tensors.at("lm_head.weight"), probes.back().second));
    return probes;
  }

  static void store(Trace& trace, const std::vector<Probe>& probes, int64_t rows, int64_t columns, int64_t b,
                    int64_t t) {
    for (size_t p = 0; p < probes.size(); ++p) {
      const auto& [name, values] = probes[p];
      if (trace.probes.size() == p)
        trace.probes.push_back({name, HostTensor(DType::kF32, {rows, columns, static_cast<int64_t>(values.size())})});
      float* to =
          trace.probes[p].value.values<float>().data() + (b * columns + t) * static_cast<int64_t>(values.size());
      std::copy(values.begin(), values.end(), to);
    }
  }

  HostTensor gather(size_t layer, bool is_conv, Shape shape) const {
    shape.insert(shape.begin(), options_.rows);
    std::vector<float> values;
    for (const RowState& row : rows_) {
      const Vector& state = is_conv ? row.conv[layer] : row.ssm[layer];
      values.insert(values.end(), state.begin(), state.end());
    }
    return HostTensor(std::move(shape), values);
  }

  const Weights& w_;
  SessionOptions options_;
  std::vector<RowState> rows_;
  int64_t length_ = 0;
};

class TinyModel : public Model {
 public:
  explicit TinyModel(Weights weights) : weights_(std::move(weights)) {}
  std::unique_ptr<Session> start(const SessionOptions& options) override {
    return std::make_unique<TinySession>(weights_, options);
  }
  HostTensor weight(const std::string& name) const override {
    const Vector& values = weights_.tensors.at(name);
    return HostTensor({static_cast<int64_t>(values.size())}, std::vector<float>(values.begin(), values.end()));
  }

 private:
  Weights weights_;
};

class TinySubject : public Subject {
 public:
  TinySubject() {
    while (has_fault("open", 0)) sleep(1);
    capabilities_.name = "tiny";
    capabilities_.device = "cpu";
    capabilities_.versions = {"tiny 1"};
    capabilities_.models = {"mamba"};
    capabilities_.compute_dtypes = capabilities_.weight_dtypes = {DType::kF32};
    capabilities_.caches = {CacheKind::kNone, CacheKind::kDynamic};
    capabilities_.residencies = {Residency::kResident};
    capabilities_.can_reorder = true;
    capabilities_.is_accelerated = has_fault("fallback", 0);
  }
  const Capabilities& capabilities() const override { return capabilities_; }
  std::unique_ptr<Model> load(const ModelConfig& config, std::shared_ptr<const WeightSource> source,
                              const LoadOptions&) override {
    if (config.model != "mamba") throw UnsupportedError("tiny", "only mamba");
    Weights weights{mamba_fields(config), {}};
    for (const std::string& name : source->names()) {
      const HostTensor tensor = source->read(name);
      Vector& values = weights.tensors[name];
      for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(tensor.at(i));
    }
    return std::make_unique<TinyModel>(std::move(weights));
  }

 private:
  Capabilities capabilities_;
};

}  // namespace

ASSAY_EXPORT_SUBJECT(TinySubject)

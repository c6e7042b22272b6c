#include "reference/blocks/mamba_mixer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cases/spec/models/falcon_mamba.hpp"
#include "cases/spec/models/jamba.hpp"
#include "cases/spec/models/zamba.hpp"
#include "reference/blocks/initial_state.hpp"
#include "reference/testing/models.hpp"
#include "reference/testing/values.hpp"

namespace assay::reference {
namespace {

using Row = std::vector<double>;
using SelectionNorm = MambaMixerShape::SelectionNorm;

double silu_of(double x) { return x / (1 + std::exp(-x)); }

// The mixer without its output projection, models.md B3.1 element by element: gated[t][channel].
std::vector<Row> gated_by_hand(const std::vector<Row>& h, const Place& place, const MambaMixerShape& shape) {
  const auto weight = [&](const std::string& name, const std::vector<int64_t>& index) {
    return element(place.weight(name), index);
  };
  const auto bias = [&](const std::string& name, int64_t i) {
    const at::Tensor found = place.find(name);
    return found.defined() ? element(found, {i}) : 0.0;
  };
  const int64_t I = shape.intermediate_size, N = shape.state_size, R = shape.time_step_rank, K = shape.conv_kernel;
  const int64_t length = static_cast<int64_t>(h.size()), heads = std::max<int64_t>(shape.heads, 1), width = I / heads;
  const bool has_heads = shape.heads > 0;
  const auto headed = [&](const char* plain, const char* stacked, int64_t head, std::vector<int64_t> index) {
    if (has_heads) index.insert(index.begin(), head);
    return weight(has_heads ? stacked : plain, index);
  };
  const auto projected = [&](int64_t t, int64_t row) {
    double sum = bias("in_proj.bias", row);
    for (int64_t i = 0; i < shape.hidden_size; ++i)
      sum += weight("in_proj.weight", {row, i}) * h[static_cast<size_t>(t)][static_cast<size_t>(i)];
    return sum;
  };
  const auto x_in = [&](int64_t t, int64_t c) { return t < 0 ? 0.0 : projected(t, has_heads ? 2 * c : c); };

  std::vector<Row> x(h.size(), Row(static_cast<size_t>(I))), gated = x;
  for (int64_t t = 0; t < length; ++t)
    for (int64_t c = 0; c < I; ++c) {
      double sum = bias("conv1d.bias", c);
      for (int64_t j = 0; j < K; ++j) sum += weight("conv1d.weight", {c, 0, j}) * x_in(t - K + 1 + j, c);
      x[static_cast<size_t>(t)][static_cast<size_t>(c)] = silu_of(sum);
    }

  for (int64_t head = 0; head < heads; ++head) {
    std::vector<Row> state(static_cast<size_t>(width), Row(static_cast<size_t>(N)));
    for (int64_t t = 0; t < length; ++t) {
      const Row& all = x[static_cast<size_t>(t)];
      Row selection(static_cast<size_t>(R + 2 * N));
      for (int64_t s = 0; s < R + 2 * N; ++s)
        for (int64_t c = 0; c < width; ++c)
          selection[static_cast<size_t>(s)] +=
              headed("x_proj.weight", "x_proj_weight", head, {s, c}) * all[static_cast<size_t>(head * width + c)];
      const auto norm = [&](const char* name, int64_t first, int64_t count) {
        if (shape.selection_norm == SelectionNorm::kNone) return;
        double squares = 0;
        for (int64_t i = first; i < first + count; ++i) squares += std::pow(selection[static_cast<size_t>(i)], 2);
        for (int64_t i = 0; i < count; ++i)
          selection[static_cast<size_t>(first + i)] *=
              (shape.selection_norm == SelectionNorm::kWeighted ? weight(name, {i}) : 1.0) /
              std::sqrt(squares / static_cast<double>(count) + shape.epsilon);
      };
      norm("dt_layernorm.weight", 0, R);
      norm("b_layernorm.weight", R, N);
      norm("c_layernorm.weight", R + N, N);
      for (int64_t c = 0; c < width; ++c) {
        const int64_t channel = head * width + c;
        double dt = headed("dt_proj.bias", "dt_proj_bias", head, {c});
        for (int64_t r = 0; r < R; ++r)
          dt += headed("dt_proj.weight", "dt_proj_weight", head, {c, r}) * selection[static_cast<size_t>(r)];
        dt = std::log1p(std::exp(dt));
        const double value = all[static_cast<size_t>(channel)];
        double y = headed("D", "D", head, {c}) * value;
        for (int64_t n = 0; n < N; ++n) {
          double& s = state[static_cast<size_t>(c)][static_cast<size_t>(n)];
          s = std::exp(-dt * std::exp(headed("A_log", "A_log", head, {c, n}))) * s +
              dt * selection[static_cast<size_t>(R + n)] * value;
          y += s * selection[static_cast<size_t>(R + N + n)];
        }
        const double z = projected(t, has_heads ? 2 * channel + 1 : I + channel);
        gated[static_cast<size_t>(t)][static_cast<size_t>(channel)] = y * silu_of(z);
      }
    }
  }
  return gated;
}

void expect_formula(const std::string& id, const MambaMixerShape& shape, const std::string& prefix) {
  const ModelConfig config = repository_config(id);
  const auto weights = store_of(config, open_weights(config));
  const Place place{*weights, prefix, "mixer."};
  const int64_t length = 5;
  const at::Tensor h = values({1, length, shape.hidden_size}, 1).to(at::kFloat);
  std::vector<Row> rows;
  for (int64_t t = 0; t < length; ++t) {
    rows.emplace_back();
    for (int64_t i = 0; i < shape.hidden_size; ++i) rows.back().push_back(element(h, {0, t, i}));
  }

  LayerState state;
  initial_state(state, 1, shape);
  const Forms forms;
  Probes probes(/*capture=*/true);
  const Pass pass{{}, {}, {}, forms, probes};
  mamba_mixer(h, place, shape, state, pass);
  const Trace trace = probes.take();
  const at::Tensor gated = to_aten(*trace.find("mixer.gate"));
  const std::vector<Row> expected = gated_by_hand(rows, place, shape);
  for (int64_t t = 0; t < length; ++t)
    for (int64_t c = 0; c < shape.intermediate_size; ++c)
      EXPECT_NEAR(element(gated, {0, t, c}), expected[static_cast<size_t>(t)][static_cast<size_t>(c)], 1e-5)
          << id << " " << t << " " << c;
}

TEST(MambaMixer, HeadsHaveInterleavedRowsAndParametersOfTheirOwn) {
  const ZambaFields fields = zamba_fields(repository_config("zamba/awkward"));
  expect_formula("zamba/awkward", fields.mixer, fields.decoder(1) + "mamba.");
}

TEST(MambaMixer, SelectionIsNormedPartByPartWithoutWeights) {
  expect_formula("falcon_mamba/awkward", falcon_mamba_fields(repository_config("falcon_mamba/awkward")).mixer,
                 "backbone.layers.0.mixer.");
}

TEST(MambaMixer, SelectionIsNormedPartByPartWithWeights) {
  expect_formula("jamba/tiny", jamba_fields(repository_config("jamba/tiny")).mixer, "model.layers.0.mamba.");
}

}  // namespace
}  // namespace assay::reference

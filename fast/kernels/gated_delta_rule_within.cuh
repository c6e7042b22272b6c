// The part of a chunk that no state enters: X, P X and the scales of its rows, one block a (row, chunk, value head).
#pragma once

#include "fast/kernels/gated_delta_rule_chunk.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"

namespace assay::fast {

inline constexpr int kWithinSide = 16;  // a thread owns rows ti + 16 r and columns tj + 16 c, or 4 tj + c, of a square
inline constexpr int kWithinOwn = kDeltaRuleChunk / kWithinSide;
inline constexpr int kWithinPitch = kDeltaRuleChunk + 4;

// The gates of a chunk by one warp, each lane positions lane and lane + 32.
template <typename T>
__device__ inline void delta_rule_gates(const GatedDeltaRuleParams<T>& p, int64_t first, int64_t count, int64_t head,
                                        float2* sums, float* beta) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  double before = 0;
#pragma unroll
  for (int half = 0; half < kDeltaRuleChunk / kWarp; ++half) {
    const int i = half * kWarp + lane;
    float g = 0, rate = 0;
    if (i < count) {
      const int64_t t = first + i;
      g = to_float(p.g[t * p.g_stride + head]);
      if (p.a != nullptr) g = p.a[head] * softplus(g + to_float(p.dt_bias[head]));
      rate = to_float(p.beta[t * p.beta_stride + head]);
      if (p.has_sigmoid) rate = sigmoid(rate);
      if (p.g_out != nullptr) p.g_out[t * p.value_heads + head] = g;
      if (p.beta_out != nullptr) p.beta_out[t * p.value_heads + head] = from_float<T>(rate);
    }
    double sum = static_cast<double>(g);
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const double lower = __shfl_up_sync(kFullWarp, sum, offset);
      if (lane >= offset) sum += lower;
    }
    sum += before;
    before = __shfl_sync(kFullWarp, sum, kWarp - 1);
    const float high = static_cast<float>(sum);
    sums[i] = make_float2(high, static_cast<float>(sum - static_cast<double>(high)));
    beta[i] = rate;
  }
}

__device__ inline float delta_rule_decay(float2 later, float2 earlier) {
  return precise_exp((later.x - earlier.x) + (later.y - earlier.y));
}

// x = (I + a)^-1 of the unit lower triangular I + a, by blocks of 16 rows: what earlier rows contribute, by all
// threads, then substitution inside the block, one thread a column. Ends in a barrier.
__device__ inline void delta_rule_invert(const float (&a)[kDeltaRuleChunk][kWithinPitch], float (*x)[kWithinPitch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int ti = thread / kWithinSide, tj = thread % kWithinSide;
  for (int first = 0; first < kDeltaRuleChunk; first += kWithinSide) {
    const int i = first + ti, c = 4 * tj;
    float row[4];
#pragma unroll
    for (int n = 0; n < 4; ++n) row[n] = c + n == i ? 1.0f : 0.0f;
    // Columns from first + 16 on stay 0: they lie above the diagonal.
    if (c < first + kWithinSide) {
      for (int j = 0; j < first; j += 4) {
        float left[4];
        load_pack<4>(&a[i][j], left);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          float right[4];
          load_pack<4>(&x[j + k][c], right);
#pragma unroll
          for (int n = 0; n < 4; ++n) row[n] = fmaf(-left[k], right[n], row[n]);
        }
      }
    }
    store_pack<4>(&x[i][c], row);
    __syncthreads();
    if (thread < first + kWithinSide) {
      float column[kWithinSide];
#pragma unroll
      for (int r = 0; r < kWithinSide; ++r) {
        column[r] = x[first + r][thread];
#pragma unroll
        for (int s = 0; s < r; ++s) column[r] = fmaf(-a[first + r][first + s], column[s], column[r]);
        x[first + r][thread] = column[r];
      }
    }
    __syncthreads();
  }
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kDeltaRuleThreads, 2)
    delta_rule_within_kernel(GatedDeltaRuleParams<T> p, DeltaRuleWithin* chunks, int64_t chunk_count) {
  constexpr int kTile = kDeltaRuleChunk;
  alignas(16) __shared__ float lower[kTile][kWithinPitch];               // A, then P
  alignas(16) __shared__ float staged[2 * kTile * kDeltaRuleSlabPitch];  // slabs of k and q, then X
  __shared__ float2 sums[kTile];
  __shared__ float beta[kTile], key_scale[kTile], query_scale[kTile];
  static_assert(kTile * kWithinPitch <= 2 * kTile * kDeltaRuleSlabPitch);
  auto slabs = reinterpret_cast<float(*)[kTile][kDeltaRuleSlabPitch]>(staged);
  auto x = reinterpret_cast<float(*)[kWithinPitch]>(staged);
  const int thread = static_cast<int>(threadIdx.x);
  const int ti = thread / kWithinSide, tj = thread % kWithinSide;
  const int slab_row = thread / 8, slab_column = thread % 8 * 4;  // and the row 32 further down
  const int64_t items = p.batch * p.value_heads * chunk_count;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t row_head = item / chunk_count;
    const int64_t row = row_head / p.value_heads;
    const int64_t head = row_head - row * p.value_heads;
    const int64_t key_head = head / (p.value_heads / p.key_heads);
    const int64_t start = (item - row_head * chunk_count) * kTile;
    const int64_t first = row * p.length + start;
    const int64_t count = min(static_cast<int64_t>(kTile), p.length - start);
    const T* k = p.k + first * p.k_stride + key_head * p.key_dim;
    const T* q = p.q + first * p.q_stride + key_head * p.key_dim;
    if (thread < kWarp) delta_rule_gates(p, first, count, head, sums, beta);

    float ahead[2][2][4];  // of k and q, rows slab_row and slab_row + 32: the slab that comes next
    float squares[2][2] = {};
    auto fetch = [&](int64_t depth) {
#pragma unroll
      for (int u = 0; u < 2; ++u) {
        const int64_t i = slab_row + 32 * u;
        load_quad<kWidth>(k + i * p.k_stride, depth + slab_column, p.key_dim, i < count, ahead[0][u]);
        load_quad<kWidth>(q + i * p.q_stride, depth + slab_column, p.key_dim, i < count, ahead[1][u]);
      }
    };
    float keys[kWithinOwn][kWithinOwn] = {}, scores[kWithinOwn][kWithinOwn] = {};  // k_i . k_j and q_i . k_j
    fetch(0);
    for (int64_t depth = 0; depth < p.key_dim; depth += kDeltaRuleDepth) {
#pragma unroll
      for (int s = 0; s < 2; ++s) {
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          store_pack<4>(&slabs[s][slab_row + 32 * u][slab_column], ahead[s][u]);
#pragma unroll
          for (int n = 0; n < 4; ++n) squares[s][u] = fmaf(ahead[s][u][n], ahead[s][u][n], squares[s][u]);
        }
      }
      __syncthreads();
      if (depth + kDeltaRuleDepth < p.key_dim) fetch(depth + kDeltaRuleDepth);
#pragma unroll 2
      for (int d = 0; d < kDeltaRuleDepth; d += 4) {
        float right[kWithinOwn][4];
#pragma unroll
        for (int c = 0; c < kWithinOwn; ++c) load_pack<4>(&slabs[0][tj + kWithinSide * c][d], right[c]);
#pragma unroll
        for (int r = 0; r < kWithinOwn; ++r) {
          float key[4], query[4];
          load_pack<4>(&slabs[0][ti + kWithinSide * r][d], key);
          load_pack<4>(&slabs[1][ti + kWithinSide * r][d], query);
#pragma unroll
          for (int c = 0; c <= r; ++c) {
#pragma unroll
            for (int n = 0; n < 4; ++n) {
              keys[r][c] = fmaf(key[n], right[c][n], keys[r][c]);
              scores[r][c] = fmaf(query[n], right[c][n], scores[r][c]);
            }
          }
        }
      }
      __syncthreads();
    }

#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const float key_square = sum_lanes<8>(squares[0][u]), query_square = sum_lanes<8>(squares[1][u]);
      const int i = slab_row + 32 * u;
      if (slab_column != 0) continue;
      // 0, not 1 / sqrt(epsilon), beyond the sequence: epsilon may be 0.
      key_scale[i] = i < count ? (p.has_l2norm ? 1.0f / sqrtf(key_square + p.epsilon) : 1.0f) : 0.0f;
      const float length = sqrtf(query_square + p.epsilon) * sqrtf(static_cast<float>(p.key_dim));
      query_scale[i] = i < count ? (p.has_l2norm ? 1.0f / length : 1.0f) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kWithinOwn; ++r) {
#pragma unroll
      for (int c = 0; c < kWithinOwn; ++c) {
        const int i = ti + kWithinSide * r, j = tj + kWithinSide * c;
        // Selected, not multiplied by 0: above the diagonal the decay is a growth and may overflow.
        const float decayed = j <= i ? delta_rule_decay(sums[i], sums[j]) * key_scale[j] : 0.0f;
        lower[i][j] = j < i ? beta[i] * key_scale[i] * keys[r][c] * decayed : 0.0f;
        scores[r][c] *= query_scale[i] * decayed;
      }
    }
    __syncthreads();
    delta_rule_invert(lower, x);

#pragma unroll
    for (int r = 0; r < kWithinOwn; ++r) {
#pragma unroll
      for (int c = 0; c <= r; ++c) lower[ti + kWithinSide * r][tj + kWithinSide * c] = scores[r][c];
    }
    __syncthreads();
    float product[kWithinOwn][4] = {};
#pragma unroll
    for (int block = 0; block < kWithinOwn; ++block) {
#pragma unroll
      for (int j = block * kWithinSide; j < (block + 1) * kWithinSide; j += 4) {
        float right[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n) load_pack<4>(&x[j + n][4 * tj], right[n]);
#pragma unroll
        for (int r = block; r < kWithinOwn; ++r) {
          float left[4];
          load_pack<4>(&lower[ti + kWithinSide * r][j], left);
#pragma unroll
          for (int n = 0; n < 4; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) product[r][c] = fmaf(left[n], right[n][c], product[r][c]);
          }
        }
      }
    }

    DeltaRuleWithin& out = chunks[item];
#pragma unroll
    for (int r = 0; r < kWithinOwn; ++r) {
      const int i = ti + kWithinSide * r, j = 4 * tj;
      float inverse[4];
      load_pack<4>(&x[i][j], inverse);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        inverse[c] *= beta[j + c];
        product[r][c] *= beta[j + c];
      }
      store_pack<4>(&out.x[i][j], inverse);
      store_pack<4>(&out.px[i][j], product[r]);
    }
    if (thread < kTile) {
      const float from_start = precise_exp(sums[thread].x + sums[thread].y);
      out.factors[kKeyFromStart][thread] = from_start * key_scale[thread];
      out.factors[kQueryFromStart][thread] = from_start * query_scale[thread];
      out.factors[kKeyToEnd][thread] = delta_rule_decay(sums[kTile - 1], sums[thread]) * key_scale[thread];
      out.factors[kChunkDecay][thread] = precise_exp(sums[kTile - 1].x + sums[kTile - 1].y);
    }
    __syncthreads();  // the shared memory is the next item's
  }
}

}  // namespace assay::fast

// The part of a chunk that no state enters: X, P X and the scales of its rows, one block a (row, chunk, value head).
#pragma once

#include "fast/kernels/gated_delta_rule_chunk.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"

namespace assay::fast {

inline constexpr int kDeltaRuleWithinThreads = kDeltaRuleChunk;  // one a step
inline constexpr int kWithinOwn = 8;  // a thread owns rows ti + 8 r and columns tj + 8 c of a square
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

// result[i][c] += sum over k of left[8 i][k] * right[k][c]; rows from 8 kFirst on.
template <int kFirst, int kOwn>
__device__ inline void add_product(const float* left, const float* right, int depth, float (&result)[kOwn][4]) {
#pragma unroll 2
  for (int k = 0; k < depth; k += 4) {
    float x[4][4];
#pragma unroll
    for (int m = 0; m < 4; ++m) load_pack<4>(right + (k + m) * kWithinPitch, x[m]);
#pragma unroll
    for (int i = kFirst; i < kOwn; ++i) {
      float l[4];
      load_pack<4>(left + 8 * i * kWithinPitch + k, l);
#pragma unroll
      for (int m = 0; m < 4; ++m) {
#pragma unroll
        for (int c = 0; c < 4; ++c) result[i][c] = fmaf(l[m], x[m][c], result[i][c]);
      }
    }
  }
}

// to[8 i][c] = scale * from[i][c].
template <int kOwn>
__device__ inline void store_product(float* to, float scale, const float (&from)[kOwn][4]) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    float row[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) row[c] = scale * from[i][c];
    store_pack<4>(to + 8 * i * kWithinPitch, row);
  }
}

// a <- (I + a)^-1, a strictly lower triangular: its blocks of 16 by substitution, one thread a column, then twice two
// neighbouring blocks with what lies below the first, [X 0; -Y A X, Y]. Blocks of 16 above the diagonal must be 0
// inside the two squares of 32 on it; the square of 32 above the diagonal is scratch. Ends in a barrier.
__device__ inline void delta_rule_invert(float (*a)[kWithinPitch]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp, lane = thread % kWarp;
  float(*const scratch)[kWithinPitch] = reinterpret_cast<float(*)[kWithinPitch]>(&a[0][32]);
  {
    const int column = thread % 16, first = thread - column;
    float x[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) {
      x[r] = r == column ? 1.0f : 0.0f;
#pragma unroll
      for (int s = 0; s < r; s += 4) {
        float l[4];
        load_pack<4>(&a[first + r][first + s], l);
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          if (s + n < r) x[r] = fmaf(-l[n], x[s + n], x[r]);
        }
      }
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 16; ++r) a[first + r][thread] = x[r];
    __syncwarp();
  }
  {
    const int first = 32 * warp, i = lane / 4, c = lane % 4 * 4;
    float between[2][4] = {}, x[2][4] = {};
    add_product<0>(&a[first + 16 + i][first], &a[first][first + c], 16, between);
    store_product(&scratch[16 * warp + i][c], 1, between);
    __syncwarp();
    add_product<0>(&a[first + 16 + i][first + 16], &scratch[16 * warp][c], 16, x);
    store_product(&a[first + 16 + i][first + c], -1, x);
    __syncthreads();
  }
  const int i = 4 * warp + delta_rule_lane_row(), c = 4 * delta_rule_lane_column();
  float between[4][4] = {}, x[4][4] = {};
  add_product<0>(&a[32 + i][0], &a[0][c], 32, between);
  store_product(&scratch[i][c], 1, between);
  __syncthreads();
  add_product<0>(&a[32 + i][32], &scratch[0][c], 16, x);
  add_product<2>(&a[32 + i][48], &scratch[16][c], 16, x);
  store_product(&a[32 + i][c], -1, x);
  __syncthreads();
}

template <typename T, int kWidth>
__global__ void __launch_bounds__(kDeltaRuleWithinThreads, 6)
    delta_rule_within_kernel(GatedDeltaRuleParams<T> p, DeltaRuleWithin* chunks, int64_t chunk_count) {
  constexpr int kTile = kDeltaRuleChunk, kPitch = kDeltaRuleSlabPitch;
  alignas(16) __shared__ float staged[2][kDeltaRuleSlab];  // slabs of k and q, then A, P and the scales
  __shared__ float2 sums[kTile];
  alignas(16) __shared__ float beta[kTile];
  auto a = reinterpret_cast<float(*)[kWithinPitch]>(&staged[0][0]);
  auto decayed_scores = a + kTile;
  float* const key_scale = &decayed_scores[kTile][0];
  float* const query_scale = key_scale + kTile;
  static_assert(2 * kTile * (kWithinPitch + 1) <= 2 * kDeltaRuleSlab);
  const int thread = static_cast<int>(threadIdx.x);
  const int ti = thread / kWarp * 4 + delta_rule_lane_row(), tj = delta_rule_lane_column();
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
    auto fetch = [&](int depth, float* to) {
      const int i = thread / 8, at = depth + thread % 8 * 4;
      const int left = static_cast<int>(p.key_dim) - at, rows = left > 0 ? static_cast<int>(count) : 0;
      const T* from_k = k + i * p.k_stride + at;
      const T* from_q = q + i * p.q_stride + at;
      to += i * kPitch + thread % 8 * 4;
#pragma unroll(kWidth == 4 ? 8 : 1)
      for (int u = 0; u < kTile; u += 8) {
        stage_quad<kWidth>(to + u * kPitch, from_k, i + u < rows ? left : 0);
        stage_quad<kWidth>(to + (kTile + u) * kPitch, from_q, i + u < rows ? left : 0);
        from_k += 8 * p.k_stride;
        from_q += 8 * p.q_stride;
      }
      commit_copies();
    };
    fetch(0, staged[0]);
    if (thread < kWarp) delta_rule_gates(p, first, count, head, sums, beta);

    float keys[kWithinOwn][kWithinOwn] = {}, scores[kWithinOwn][kWithinOwn] = {};  // k_i . k_j and q_i . k_j
    float squares[2][4] = {};                                                      // of step `thread`
    int stage = 0;
    for (int depth = 0; depth < p.key_dim; depth += kDeltaRuleDepth) {
      const float* slab = staged[stage];
      stage ^= 1;
      wait_for_copies_but<0>();
      __syncthreads();
      if (depth + kDeltaRuleDepth < p.key_dim) fetch(depth + kDeltaRuleDepth, staged[stage]);
#pragma unroll 1
      for (int d = 0; d < kDeltaRuleDepth; d += 4) {
        float right[kWithinOwn][4];
#pragma unroll
        for (int c = 0; c < kWithinOwn; ++c) load_pack<4>(slab + (tj + 8 * c) * kPitch + d, right[c]);
#pragma unroll
        for (int r = 0; r < kWithinOwn; ++r) {
          float key[4], query[4];
          load_pack<4>(slab + (ti + 8 * r) * kPitch + d, key);
          load_pack<4>(slab + (kTile + ti + 8 * r) * kPitch + d, query);
#pragma unroll
          for (int c = 0; c <= r; ++c) {
#pragma unroll
            for (int n = 0; n < 4; ++n) {
              keys[r][c] = fmaf(key[n], right[c][n], keys[r][c]);
              scores[r][c] = fmaf(query[n], right[c][n], scores[r][c]);
            }
          }
        }
#pragma unroll
        for (int s = 0; s < 2; ++s) {
          float own[4];
          load_pack<4>(slab + (s * kTile + thread) * kPitch + d, own);
#pragma unroll
          for (int n = 0; n < 4; ++n) squares[s][n] = fmaf(own[n], own[n], squares[s][n]);
        }
      }
    }

    __syncthreads();  // the slabs have been read
    const float key_square = (squares[0][0] + squares[0][1]) + (squares[0][2] + squares[0][3]);
    const float query_square = (squares[1][0] + squares[1][1]) + (squares[1][2] + squares[1][3]);
    // 0, not 1 / sqrt(epsilon), beyond the sequence: epsilon may be 0.
    const float key_length = p.has_l2norm ? sqrtf(key_square + p.epsilon) : 1.0f;
    const float query_length =
        p.has_l2norm ? sqrtf(query_square + p.epsilon) * sqrtf(static_cast<float>(p.key_dim)) : 1.0f;
    key_scale[thread] = thread < count ? 1.0f / key_length : 0.0f;
    query_scale[thread] = thread < count ? 1.0f / query_length : 0.0f;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kWithinOwn; ++r) {
      const int i = ti + 8 * r;
      const float2 sum = sums[i];
      const float to_key = beta[i] * key_scale[i], to_query = query_scale[i];
#pragma unroll
      for (int c = 0; c < kWithinOwn; ++c) {
        const int j = tj + 8 * c;
        if (c <= r) {
          // Selected, not multiplied by 0: above the diagonal the decay is a growth and may overflow.
          const float decayed = j <= i ? delta_rule_decay(sum, sums[j]) * key_scale[j] : 0.0f;
          a[i][j] = to_key * keys[r][c] * decayed;
          decayed_scores[i][j] = scores[r][c] * (to_query * decayed);
        } else if (c / 4 == r / 4) {
          a[i][j] = 0.0f;
          decayed_scores[i][j] = 0.0f;
        }
      }
    }
    __syncthreads();
    DeltaRuleWithin& out = chunks[item];
    const float from_start = precise_exp(sums[thread].x + sums[thread].y);
    out.factors[kKeyFromStart][thread] = from_start * key_scale[thread];
    out.factors[kQueryFromStart][thread] = from_start * query_scale[thread];
    out.factors[kKeyToEnd][thread] = delta_rule_decay(sums[kTile - 1], sums[thread]) * key_scale[thread];
    out.factors[kChunkDecay][thread] = precise_exp(sums[kTile - 1].x + sums[kTile - 1].y);
    delta_rule_invert(a);

    float near[kWithinOwn][4] = {}, far[kWithinOwn][4] = {};  // P X in columns below 32, and from there on
    const int column = 4 * tj;
    add_product<0>(&decayed_scores[ti][0], &a[0][column], 16, near);
    add_product<2>(&decayed_scores[ti][16], &a[16][column], 16, near);
    add_product<4>(&decayed_scores[ti][32], &a[32][column], 16, near);
    add_product<6>(&decayed_scores[ti][48], &a[48][column], 16, near);
    add_product<4>(&decayed_scores[ti][32], &a[32][32 + column], 16, far);
    add_product<6>(&decayed_scores[ti][48], &a[48][32 + column], 16, far);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float rate[4];
      load_pack<4>(beta + 32 * half + column, rate);
#pragma unroll
      for (int r = 4 * half; r < kWithinOwn; ++r) {
        const int i = ti + 8 * r, j = 32 * half + column;
        float x[4], px[4];
        load_pack<4>(&a[i][j], x);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          x[c] *= rate[c];
          px[c] = rate[c] * (half == 0 ? near : far)[r][c];
        }
        store_pack<4>(&out.x[i][j], x);
        store_pack<4>(&out.px[i][j], px);
      }
    }
    __syncthreads();  // the shared memory is the next item's
  }
}

}  // namespace assay::fast

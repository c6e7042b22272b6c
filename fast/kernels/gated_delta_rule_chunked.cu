#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/gated_delta_rule_chunk.cuh"
#include "fast/kernels/gated_delta_rule_require.hpp"
#include "fast/kernels/gated_delta_rule_within.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kTile = kDeltaRuleChunk;
constexpr int kDepth = kDeltaRuleDepth;
constexpr int kThreads = kDeltaRuleThreads;
constexpr int kColumns = 32;  // value columns of a block: batch 1 with 32 heads of 128 columns has a block for each SM
constexpr int kColumnPitch = kColumns + 4;
constexpr int kKeyPitch = kDeltaRuleKeyDim + 4;
constexpr int kOwn = 4;
constexpr int kHalf = kThreads / 2;

using Slab = float[kTile][kDeltaRuleSlabPitch];

// result[r][c] += sum over d of left[ti + 16 r][d] * right[d][4 tv + c]; rows from 16 kFirst on.
template <int kFirst>
__device__ inline void multiply(const Slab& left, const float (*right)[kColumnPitch], int ti, int tv,
                                float (&result)[kOwn][kOwn]) {
#pragma unroll 2
  for (int d = 0; d < kDepth; d += 4) {
    float l[kOwn][4];
#pragma unroll
    for (int r = kFirst; r < kOwn; ++r) load_pack<4>(&left[ti + 16 * r][d], l[r]);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      float x[kOwn];
      load_pack<4>(&right[d + n][4 * tv], x);
#pragma unroll
      for (int r = kFirst; r < kOwn; ++r) {
#pragma unroll
        for (int c = 0; c < kOwn; ++c) result[r][c] = fmaf(l[r][n], x[c], result[r][c]);
      }
    }
  }
}

// The state of 32 value columns of one (row, value head) through all chunks, in registers: a thread owns keys
// 4 tk .. 4 tk + 3 and columns 4 tv .. 4 tv + 3 of it. In a product whose left side comes from k (half 0) or q (half 1)
// a half of the block owns the 64 x 32 result, rows ti + 16 r. Each slab is fetched while the one before it is used.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, 2)
    delta_rule_pass_kernel(GatedDeltaRuleParams<T> p, const DeltaRuleWithin* chunks, int64_t chunk_count) {
  alignas(16) __shared__ Slab slabs[2];                               // of k and q, of X and P X; then keys [32][132]
  alignas(16) __shared__ float held[kDeltaRuleKeyDim][kColumnPitch];  // the state at the chunk's start
  alignas(16) __shared__ float rest[kTile][kColumnPitch];             // R, then E
  __shared__ float factors[4][kTile];
  static_assert(4 * kTile == kThreads);  // one a thread
  auto keys = reinterpret_cast<float(*)[kKeyPitch]>(slabs);
  static_assert(sizeof(float) * kDepth * kKeyPitch <= sizeof(slabs));
  const int thread = static_cast<int>(threadIdx.x);
  const int tk = thread / 8, tv = thread % 8;
  const int half = thread / kHalf, ti = thread % kHalf / 8;
  const int64_t tiles = ceil_div(p.value_dim, kColumns);
  const int64_t slabs_of_keys = ceil_div(p.key_dim, kDepth);
  for (int64_t item = blockIdx.x; item < p.batch * p.value_heads * tiles; item += gridDim.x) {
    const int64_t row_head = item / tiles;
    const int64_t row = row_head / p.value_heads;
    const int64_t head = row_head - row * p.value_heads;
    const int64_t key_head = head / (p.value_heads / p.key_heads);
    const int64_t column = (item - row_head * tiles) * kColumns + 4 * tv;  // first of this thread's four
    const T* q = p.q + row * p.length * p.q_stride + key_head * p.key_dim;
    const T* k = p.k + row * p.length * p.k_stride + key_head * p.key_dim;
    const T* v = p.v + row * p.length * p.v_stride + head * p.value_dim;
    T* o = p.o + (row * p.length * p.value_heads + head) * p.value_dim;
    const DeltaRuleWithin* within = chunks + row_head * chunk_count;

    float ahead[4][4];   // this thread's part of the slab that comes next
    float factor_ahead;  // and of the next chunk's factors
    // Slab s of a chunk: k and q by depth, X and P X in two halves, the keys of 32 steps twice.
    auto fetch = [&](int64_t chunk, int64_t s) {
      const int64_t first = chunk * kTile;
      if (s < slabs_of_keys + 2) {
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const int i = thread / 8 + 32 * u;
          if (s < slabs_of_keys) {
            const int64_t t = first + i, depth = s * kDepth + 4 * tv;
            load_quad<kWidth>(k + t * p.k_stride, depth, p.key_dim, t < p.length, ahead[u]);
            load_quad<kWidth>(q + t * p.q_stride, depth, p.key_dim, t < p.length, ahead[2 + u]);
          } else {
            const int64_t j = (s - slabs_of_keys) * kDepth + 4 * tv;
            load_pack<4>(&within[chunk].x[i][j], ahead[u]);
            load_pack<4>(&within[chunk].px[i][j], ahead[2 + u]);
          }
        }
      } else {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const int64_t t = first + (s - slabs_of_keys - 2) * kDepth + thread / 32 + 8 * u;
          load_quad<kWidth>(k + t * p.k_stride, thread % 32 * 4, p.key_dim, t < p.length, ahead[u]);
        }
      }
    };
    auto stage_slabs = [&] {
#pragma unroll
      for (int u = 0; u < 4; ++u) store_pack<4>(&slabs[u / 2][thread / 8 + u % 2 * 32][4 * tv], ahead[u]);
      __syncthreads();
    };

    float state[kOwn][kOwn];
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      const int64_t key = 4 * tk + r;
      const bool is_given = p.initial_state != nullptr && key < p.key_dim;
      const float* from = is_given ? p.initial_state + (row_head * p.key_dim + key) * p.value_dim : nullptr;
      load_quad<kWidth>(from, column, p.value_dim, is_given, state[r]);
    }
    fetch(0, 0);
    factor_ahead = within[0].factors[thread / kTile][thread % kTile];
    for (int64_t chunk = 0; chunk < chunk_count; ++chunk) {
      const int64_t first = chunk * kTile;
#pragma unroll
      for (int r = 0; r < kOwn; ++r) store_pack<4>(&held[4 * tk + r][4 * tv], state[r]);
      factors[thread / kTile][thread % kTile] = factor_ahead;
      float result[kOwn][kOwn] = {};  // K S and Q S
      float value[kOwn][4];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        const int64_t t = first + ti + 16 * r;
        load_quad<kWidth>(v + t * p.v_stride, column, p.value_dim, half == 0 && t < p.length, value[r]);
      }
      for (int64_t s = 0; s < slabs_of_keys; ++s) {
        stage_slabs();
        fetch(chunk, s + 1);
        multiply<0>(slabs[half], &held[s * kDepth], ti, tv, result);
        __syncthreads();
      }

#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        const float scale = factors[half == 0 ? kKeyFromStart : kQueryFromStart][ti + 16 * r];
#pragma unroll
        for (int c = 0; c < kOwn; ++c) {
          value[r][c] = fmaf(-scale, result[r][c], value[r][c]);
          result[r][c] = half == 0 ? 0.0f : scale * result[r][c];
        }
        if (half == 0) store_pack<4>(&rest[ti + 16 * r][4 * tv], value[r]);
      }
      stage_slabs();
      fetch(chunk, slabs_of_keys + 1);
      multiply<0>(slabs[half], &rest[0], ti, tv, result);  // E and O
      __syncthreads();
      stage_slabs();
      fetch(chunk, slabs_of_keys + 2);
      multiply<2>(slabs[half], &rest[kDepth], ti, tv, result);  // rows below 32 of X and P X are 0 from column 32 on
      __syncthreads();

#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
        const int i = ti + 16 * r;
        if (half == 0) {
          const float to_end = factors[kKeyToEnd][i];
#pragma unroll
          for (int c = 0; c < kOwn; ++c) result[r][c] *= to_end;
          store_pack<4>(&rest[i][4 * tv], result[r]);
        } else if (first + i < p.length) {
          store_quad<kWidth>(o + (first + i) * p.value_heads * p.value_dim, column, p.value_dim, result[r]);
        }
      }
      const float decay = factors[kChunkDecay][0];
#pragma unroll
      for (int r = 0; r < kOwn; ++r) {
#pragma unroll
        for (int c = 0; c < kOwn; ++c) state[r][c] *= decay;
      }
#pragma unroll
      for (int part = 0; part < 2; ++part) {
#pragma unroll
        for (int u = 0; u < 4; ++u) store_pack<4>(&keys[thread / 32 + 8 * u][thread % 32 * 4], ahead[u]);
        __syncthreads();
        if (part == 0) {
          fetch(chunk, slabs_of_keys + 3);
        } else if (chunk + 1 < chunk_count) {
          fetch(chunk + 1, 0);
          factor_ahead = within[chunk + 1].factors[thread / kTile][thread % kTile];
        }
        if (4 * tk < p.key_dim) {
#pragma unroll 4
          for (int j = 0; j < kDepth; ++j) {
            float key[kOwn], e[kOwn];
            load_pack<4>(&keys[j][4 * tk], key);
            load_pack<4>(&rest[part * kDepth + j][4 * tv], e);
#pragma unroll
            for (int r = 0; r < kOwn; ++r) {
#pragma unroll
              for (int c = 0; c < kOwn; ++c) state[r][c] = fmaf(key[r], e[c], state[r][c]);
            }
          }
        }
        __syncthreads();
      }
    }
    if (p.final_state == nullptr) continue;
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
      const int64_t key = 4 * tk + r;
      if (key >= p.key_dim) break;
      store_quad<kWidth>(p.final_state + (row_head * p.key_dim + key) * p.value_dim, column, p.value_dim, state[r]);
    }
  }
}

template <typename T>
int64_t chunk_count(const GatedDeltaRuleParams<T>& p) {
  require_delta_rule_sizes("gated_delta_rule_chunked", p);
  require_range("gated_delta_rule_chunked", "length", p.length, 1, kAnySize);
  return ceil_div(p.length, kTile);
}

template <typename T, int kWidth>
void start(const GatedDeltaRuleParams<T>& p, int64_t chunks, cudaStream_t stream) {
  auto* within = static_cast<DeltaRuleWithin*>(p.workspace);
  const int64_t row_heads = p.batch * p.value_heads;
  launch("gated_delta_rule_chunked", delta_rule_within_kernel<T, kWidth>, row_heads * chunks, kThreads, stream, p,
         within, chunks);
  launch("gated_delta_rule_chunked", delta_rule_pass_kernel<T, kWidth>, row_heads * ceil_div(p.value_dim, kColumns),
         kThreads, stream, p, within, chunks);
}

}  // namespace

template <typename T>
size_t gated_delta_rule_workspace_bytes(const GatedDeltaRuleParams<T>& p) {
  return static_cast<size_t>(p.batch * p.value_heads * chunk_count(p)) * sizeof(DeltaRuleWithin);
}

template <typename T>
void gated_delta_rule_chunked(const GatedDeltaRuleParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gated_delta_rule_chunked";
  const int64_t chunks = chunk_count(p);
  require_delta_rule_operands(kName, p);
  require_pointer(kName, "workspace", p.workspace);
  const bool is_packed = is_packable<4, T>({p.q, p.k, p.v, p.o}, {p.q_stride, p.k_stride, p.v_stride, p.key_dim}) &&
                         is_packable<4, float>({p.initial_state, p.final_state}, {p.value_dim});
  is_packed ? start<T, 4>(p, chunks, stream) : start<T, 1>(p, chunks, stream);
}

template size_t gated_delta_rule_workspace_bytes<float>(const GatedDeltaRuleParams<float>&);
template void gated_delta_rule_chunked<float>(const GatedDeltaRuleParams<float>&, cudaStream_t);

}  // namespace assay::fast

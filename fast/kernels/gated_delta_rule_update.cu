#include "fast/kernels/gated_delta_rule.hpp"
#include "fast/kernels/gated_delta_rule_require.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kPacks = 8;                              // packs of columns of a block's tile, one a lane
constexpr int kRowsAtOnce = kThreads / kPacks;         // rows [k] that the block reads in one access
constexpr int kKept = kDeltaRuleKeyDim / kRowsAtOnce;  // rows a thread keeps in registers
static_assert(kDeltaRuleKeyDim <= kThreads);           // a thread reads one element of k and q

// A tile of kPacks * kWidth value columns of one (row, value head): several tiles a head, so that batch 1 has more
// blocks than heads. Lanes with one pack hold rows k = kRowsAtOnce * r + thread / kPacks of it.
template <typename T, int kWidth>
__global__ void __launch_bounds__(kThreads, 5) gated_delta_rule_update_kernel(GatedDeltaRuleUpdateParams<T> p) {
  constexpr int kColumns = kPacks * kWidth;
  __shared__ float key[kDeltaRuleKeyDim], query[kDeltaRuleKeyDim];
  __shared__ float products[3][kWarps];        // k . k, q . q, k . q
  __shared__ float sums[2][kWarps][kColumns];  // S^T k and S^T q
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp, lane = thread % kWarp;
  const int pack = thread % kPacks, first_row = thread / kPacks;
  const int64_t tiles = ceil_div(p.value_dim, kColumns);
  for (int64_t item = blockIdx.x; item < p.batch * p.value_heads * tiles; item += gridDim.x) {
    const int64_t row_head = item / tiles;
    const int64_t row = row_head / p.value_heads;
    const int64_t head = row_head - row * p.value_heads;
    const int64_t key_head = head / (p.value_heads / p.key_heads);
    const int64_t tile = item - row_head * tiles;
    const int64_t column = tile * kColumns + pack * kWidth;
    const bool has_column = column < p.value_dim;
    float* state = p.state + row_head * p.key_dim * p.value_dim + column;

    float s[kKept][kWidth];
#pragma unroll
    for (int r = 0; r < kKept; ++r) {
      const int k = kRowsAtOnce * r + first_row;
#pragma unroll
      for (int n = 0; n < kWidth; ++n) s[r][n] = 0.0f;
      if (has_column && k < p.key_dim) load_pack<kWidth>(state + k * p.value_dim, s[r]);
    }
    float value[kWidth] = {};
    if (has_column) load_pack<kWidth>(p.v + row * p.v_stride + head * p.value_dim + column, value);
    const float k_own = thread < p.key_dim ? to_float(p.k[row * p.k_stride + key_head * p.key_dim + thread]) : 0.0f;
    const float q_own = thread < p.key_dim ? to_float(p.q[row * p.q_stride + key_head * p.key_dim + thread]) : 0.0f;
    float g = to_float(p.g[row * p.g_stride + head]);
    if (p.a != nullptr) g = p.a[head] * softplus(g + to_float(p.dt_bias[head]));
    float beta = to_float(p.beta[row * p.beta_stride + head]);
    if (p.has_sigmoid) beta = sigmoid(beta);
    if (tile == 0 && thread == 0) {
      if (p.g_out != nullptr) p.g_out[row_head] = g;
      if (p.beta_out != nullptr) p.beta_out[row_head] = from_float<T>(beta);
    }

    key[thread] = k_own;
    query[thread] = q_own;
    const float own[3] = {k_own * k_own, q_own * q_own, k_own * q_own};
#pragma unroll
    for (int n = 0; n < 3; ++n) {
      const float sum = sum_lanes<kWarp>(own[n]);
      if (lane == 0) products[n][warp] = sum;
    }
    __syncthreads();

    float with_key[kWidth] = {}, with_query[kWidth] = {};
#pragma unroll
    for (int r = 0; r < kKept; ++r) {
      const float k = key[kRowsAtOnce * r + first_row], q = query[kRowsAtOnce * r + first_row];
#pragma unroll
      for (int n = 0; n < kWidth; ++n) {
        with_key[n] = fmaf(s[r][n], k, with_key[n]);
        with_query[n] = fmaf(s[r][n], q, with_query[n]);
      }
    }
    // Over the lanes of a warp that have one pack, then over the warps.
#pragma unroll
    for (int n = 0; n < kWidth; ++n) {
#pragma unroll
      for (int offset = kPacks; offset < kWarp; offset *= 2) {
        with_key[n] += __shfl_xor_sync(kFullWarp, with_key[n], offset);
        with_query[n] += __shfl_xor_sync(kFullWarp, with_query[n], offset);
      }
      if (lane < kPacks) {
        sums[0][warp][pack * kWidth + n] = with_key[n];
        sums[1][warp][pack * kWidth + n] = with_query[n];
      }
    }
    __syncthreads();

    float dot[3] = {};
#pragma unroll
    for (int n = 0; n < 3; ++n) {
#pragma unroll
      for (int w = 0; w < kWarps; ++w) dot[n] += products[n][w];
    }
    const float key_scale = p.has_l2norm ? 1.0f / sqrtf(dot[0] + p.epsilon) : 1.0f;
    const float query_scale =
        p.has_l2norm ? 1.0f / (sqrtf(dot[1] + p.epsilon) * sqrtf(static_cast<float>(p.key_dim))) : 1.0f;
    const float decay = precise_exp(g);
    float e[kWidth], out[kWidth];
#pragma unroll
    for (int n = 0; n < kWidth; ++n) {
      float held = 0, read = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        held += sums[0][w][pack * kWidth + n];
        read += sums[1][w][pack * kWidth + n];
      }
      e[n] = key_scale * (beta * fmaf(-decay * key_scale, held, value[n]));
      out[n] = query_scale * fmaf(dot[2], e[n], decay * read);
    }
#pragma unroll
    for (int r = 0; r < kKept; ++r) {
      const int k = kRowsAtOnce * r + first_row;
      if (!has_column || k >= p.key_dim) continue;
#pragma unroll
      for (int n = 0; n < kWidth; ++n) s[r][n] = fmaf(key[k], e[n], decay * s[r][n]);
      store_pack<kWidth>(state + k * p.value_dim, s[r]);
    }
    if (thread < kPacks && has_column) store_pack<kWidth>(p.o + row_head * p.value_dim + column, out);
    __syncthreads();  // the shared memory is the next item's
  }
}

}  // namespace

template <typename T>
void gated_delta_rule_update(const GatedDeltaRuleUpdateParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "gated_delta_rule_update";
  require_delta_rule_sizes(kName, p);
  require_delta_rule_operands(kName, p);
  require_pointer(kName, "state", p.state);
  constexpr int kWidth = 4;
  const bool is_packed =
      is_packable<kWidth, T>({p.v, p.o}, {p.v_stride, p.value_dim}) && is_packable<kWidth, float>({p.state}, {});
  const int64_t columns = kPacks * (is_packed ? kWidth : 1);
  launch(kName, is_packed ? gated_delta_rule_update_kernel<T, kWidth> : gated_delta_rule_update_kernel<T, 1>,
         p.batch * p.value_heads * ceil_div(p.value_dim, columns), kThreads, stream, p);
}

template void gated_delta_rule_update<float>(const GatedDeltaRuleUpdateParams<float>&, cudaStream_t);

}  // namespace assay::fast

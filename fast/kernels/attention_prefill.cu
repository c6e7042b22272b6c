#include "fast/kernels/attention.hpp"
#include "fast/kernels/attention_columns.cuh"
#include "fast/kernels/attention_require.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/storage.cuh"
#include "fast/kernels/tile.cuh"

namespace assay::fast {
namespace {

constexpr int kOwn = 8;                     // rows of a thread
constexpr int kRowTile = kTileSide * kOwn;  // rows of a block: (query, head of the group), heads fastest
constexpr int kKeyTile = kTileBand;
constexpr int kDepth = 32;       // lanes of the keys staged at a time
constexpr int kValueDepth = 16;  // values staged at a time
constexpr int kRowPitch = kRowTile + 4;
constexpr int kKeyPitch = kKeyTile + 4;
static_assert(kRowTile * kKeyPitch <= (kDepth + kKeyTile) * kRowPitch);  // a band of the output fits
constexpr int kLoadLanes = 8;  // lanes of a head that neighbouring threads read: a whole 32-byte sector
constexpr int kLoadRows = kTileThreads / kLoadLanes;
constexpr int kValueRows = kTileThreads / kTileBand;
constexpr int kKeyLoads = kKeyTile * kDepth / kTileThreads;  // of a thread, for one stage

__host__ __device__ constexpr int padded_width(int64_t width) {
  return static_cast<int>(ceil_div(width, kDepth)) * kDepth;
}

template <int kPacks>
__host__ __device__ constexpr int value_pitch() {
  return kPacks * kTileBand + 4;
}

template <int kPacks>
constexpr int staged_floats() {
  constexpr int kKeys = kDepth * kKeyPitch, kValues = kValueDepth * value_pitch<kPacks>();
  return kKeys > kValues ? kKeys : kValues;
}

// Over the kTileSide threads of one tile row.
__device__ inline float max_of_row(float value) {
#pragma unroll
  for (int offset = kTileSide / 2; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(kFullWarp, value, offset);
    value = other > value ? other : value;
  }
  return value;
}

__device__ inline float sum_of_row(float value) {
#pragma unroll
  for (int offset = kTileSide / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(kFullWarp, value, offset);
  return value;
}

// kPacks: bands of 64 lanes of the values.
template <typename T, int kPacks>
__global__ void __launch_bounds__(kTileThreads, kPacks == 1 ? 2 : 1) attention_prefill_kernel(AttentionParams<T> p) {
  const int depth = padded_width(p.width);
  float* query = dynamic_shared();                 // [depth][kRowPitch]
  float* weights = query + depth * kRowPitch;      // [kKeyTile][kRowPitch]
  float* staged = weights + kKeyTile * kRowPitch;  // keys [kDepth][kKeyPitch] or values [kValueDepth][pitch]
  __shared__ int limit[kRowTile];                  // the row's own column, the last that it sees
  __shared__ float most[kRowTile], sum[kRowTile];  // of the scores so far
  __shared__ int is_real[kKeyTile];
  constexpr int kPitch = value_pitch<kPacks>();
  constexpr int kValueLoads = kValueDepth / kValueRows * kPacks;
  constexpr int kAhead = kKeyLoads > kValueLoads ? kKeyLoads : kValueLoads;

  const int64_t group = p.heads / p.kv_heads;
  const int64_t rows = p.length * group;
  const int64_t row_tiles = ceil_div(rows, kRowTile);
  const int64_t pairs = p.batch * p.kv_heads;
  const int64_t past = past_of(p);
  const int columns = static_cast<int>(past + p.length);
  const int load_lane = static_cast<int>(threadIdx.x) % kLoadLanes;
  const int load_row = static_cast<int>(threadIdx.x) / kLoadLanes;
  const int value_lane = static_cast<int>(threadIdx.x) % kTileBand;
  const int value_row = static_cast<int>(threadIdx.x) / kTileBand;
  const int own_row = tile_row() * kOwn;
  const int own_column = tile_column() * 4;

  for (int64_t item = blockIdx.x; item < pairs * row_tiles; item += gridDim.x) {
    // The last rows, which see the most keys, first: short tiles fill up the end.
    const int64_t tile = row_tiles - 1 - item / pairs;
    const int64_t pair = item % pairs;
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int64_t first = tile * kRowTile;
    const int count = static_cast<int>(min(rows - first, int64_t{kRowTile}));
    const T* keys = p.k + pair * p.capacity * p.width;
    const T* values = p.v + pair * p.capacity * p.value_width;
    const uint8_t* mask = p.mask == nullptr ? nullptr : p.mask + batch * p.mask_stride;

    if (threadIdx.x < kRowTile) {
      limit[threadIdx.x] = static_cast<int>(past + (first + threadIdx.x) / group);
      most[threadIdx.x] = kUnseen;
      sum[threadIdx.x] = 0;
    }
    __syncthreads();
    // Of tile row r: its query, counted from the first new column, and its head.
    const auto query_of = [&](int r) { return limit[r] - past; };
    const auto head_of = [&](int r) { return kv_head * group + first + r - query_of(r) * group; };
#pragma unroll 1
    for (int r = load_row; r < kRowTile; r += kLoadRows) {
      const T* from = p.q + (batch * p.length + query_of(r)) * p.q_stride + head_of(r) * p.q_head_stride;
#pragma unroll 4
      for (int d = load_lane; d < depth; d += kLoadLanes) {
        query[d * kRowPitch + r] = r < count && d < p.width ? to_float(from[d]) : 0.0f;
      }
    }
    // Keys up to the last query's own column; all of them where a query sees none, which is the first if any.
    int end = limit[count - 1] + 1;
    if (mask != nullptr) {
      int sees = 0;
      for (int64_t c = threadIdx.x; c <= limit[0]; c += kTileThreads) sees |= mask[c];
      if (__syncthreads_or(sees) == 0) end = columns;
    }

    // The next stage is read ahead into registers while this one is multiplied.
    float ahead[kAhead];
    int real_ahead = 0;
    const auto read_keys = [&](int key, int d) {
      if (d == 0 && threadIdx.x < kKeyTile) {
        const int c = key + static_cast<int>(threadIdx.x);
        real_ahead = c < columns && (mask == nullptr || mask[c] != 0) ? 1 : 0;
      }
      const T* from = keys + static_cast<int64_t>(key + load_row) * p.width + d + load_lane;
#pragma unroll
      for (int e = 0; e < kKeyLoads; ++e) {
        const int row = e % 2 * kLoadRows, lane = e / 2 * kLoadLanes;
        const bool is_there = key + load_row + row < columns && d + load_lane + lane < p.width;
        ahead[e] = is_there ? to_float(from[row * p.width + lane]) : 0.0f;
      }
    };
    const auto stage_keys = [&](int d) {
      if (d == 0 && threadIdx.x < kKeyTile) is_real[threadIdx.x] = real_ahead;
#pragma unroll
      for (int e = 0; e < kKeyLoads; ++e) {
        staged[(e / 2 * kLoadLanes + load_lane) * kKeyPitch + e % 2 * kLoadRows + load_row] = ahead[e];
      }
    };
    const auto read_values = [&](int key) {
      const T* from = values + static_cast<int64_t>(key + value_row) * p.value_width + value_lane;
#pragma unroll
      for (int e = 0; e < kValueLoads; ++e) {
        const int row = e / kPacks * kValueRows, lane = e % kPacks * kTileBand;
        const bool is_there = key + value_row + row < columns && value_lane + lane < p.value_width;
        ahead[e] = is_there ? to_float(from[row * p.value_width + lane]) : 0.0f;
      }
    };
    const auto stage_values = [&] {
#pragma unroll
      for (int e = 0; e < kValueLoads; ++e) {
        staged[(value_row + e / kPacks * kValueRows) * kPitch + value_lane + e % kPacks * kTileBand] = ahead[e];
      }
    };

    float result[kOwn][4 * kPacks] = {};
    read_keys(0, 0);
    for (int key = 0; key < end; key += kKeyTile) {
      float scores[kOwn][4] = {};
      for (int d = 0; d < depth; d += kDepth) {
        __syncthreads();
        stage_keys(d);
        __syncthreads();
        if (d + kDepth < depth) {
          read_keys(key, d + kDepth);
        } else {
          read_values(key);
        }
        multiply_tile<kDepth, kOwn, 1>(query + d * kRowPitch, kRowPitch, staged, kKeyPitch, scores);
      }

#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        const int own_limit = limit[own_row + i];
        float now_most = kAbsent;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const int c = key + own_column + j;
          const bool is_seen = c <= own_limit && is_real[own_column + j] != 0;
          scores[i][j] = c >= columns ? kAbsent : is_seen ? scores[i][j] * p.scale : kUnseen;
          now_most = scores[i][j] > now_most ? scores[i][j] : now_most;
        }
        const float before = most[own_row + i];
        now_most = max_of_row(now_most);
        now_most = before > now_most ? before : now_most;
        const float fade = precise_exp(before - now_most);
        float total = 0;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          scores[i][j] = precise_exp(scores[i][j] - now_most);
          total += scores[i][j];
        }
        total = sum_of_row(total);
        __syncwarp();  // the row's threads, which share a warp, have read the maximum before
        if (tile_column() == 0) {
          most[own_row + i] = now_most;
          sum[own_row + i] = fmaf(sum[own_row + i], fade, total);
        }
#pragma unroll
        for (int j = 0; j < 4 * kPacks; ++j) result[i][j] *= fade;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < kOwn; i += 4) {
          *reinterpret_cast<float4*>(weights + (own_column + j) * kRowPitch + own_row + i) =
              make_float4(scores[i][j], scores[i + 1][j], scores[i + 2][j], scores[i + 3][j]);
        }
      }
      const int keys_here = min(kKeyTile, end - key);
      for (int k = 0; k < keys_here; k += kValueDepth) {
        __syncthreads();
        stage_values();
        __syncthreads();
        if (k + kValueDepth < keys_here) {
          read_values(key + k + kValueDepth);
        } else if (key + kKeyTile < end) {
          read_keys(key + kKeyTile, 0);
        }
        // A stage by itself, then onto the sum: the rounding of thousands of keys, one after the other, would pile up.
#pragma unroll
        for (int band = 0; band < kPacks; ++band) {
          float part[kOwn][4] = {};
          multiply_tile<kValueDepth, kOwn, 1>(weights + k * kRowPitch, kRowPitch, staged + band * kTileBand, kPitch,
                                              part);
#pragma unroll
          for (int i = 0; i < kOwn; ++i) {
#pragma unroll
            for (int j = 0; j < 4; ++j) result[i][4 * band + j] += part[i][j];
          }
        }
      }
    }

#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const float scale = 1.0f / sum[own_row + i];
#pragma unroll
      for (int j = 0; j < 4 * kPacks; ++j) result[i][j] *= scale;
    }
    // Out by bands through shared memory, where the queries were: neighbouring threads then write neighbouring lanes.
#pragma unroll
    for (int band = 0; band < kPacks; ++band) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
        *reinterpret_cast<float4*>(query + (own_row + i) * kKeyPitch + own_column) =
            make_float4(result[i][4 * band], result[i][4 * band + 1], result[i][4 * band + 2], result[i][4 * band + 3]);
      }
      __syncthreads();
      const int lane = band * kTileBand + value_lane;
      for (int r = value_row; r < count; r += kValueRows) {
        T* y = p.y + ((batch * p.length + query_of(r)) * p.heads + head_of(r)) * p.value_width;
        if (lane < p.value_width) y[lane] = from_float<T>(query[r * kKeyPitch + value_lane]);
      }
    }
    __syncthreads();  // the next item overwrites queries and limits
  }
}

template <typename T, int kPacks>
void start(const AttentionParams<T>& p, cudaStream_t stream) {
  const int64_t items = p.batch * p.kv_heads * ceil_div(p.length * (p.heads / p.kv_heads), kRowTile);
  const int floats = (padded_width(p.width) + kKeyTile) * kRowPitch + staged_floats<kPacks>();
  launch_shared("attention_prefill", attention_prefill_kernel<T, kPacks>, items, kTileThreads,
                floats * static_cast<int>(sizeof(float)), stream, p);
}

}  // namespace

template <typename T>
void attention_prefill(const AttentionParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "attention_prefill";
  require_attention_sizes(kName, p);
  require_attention_operands(kName, p);
  switch (ceil_div(p.value_width, kTileBand)) {
    case 1:
      return start<T, 1>(p, stream);
    case 2:
      return start<T, 2>(p, stream);
    case 3:
      return start<T, 3>(p, stream);
    default:
      return start<T, 4>(p, stream);
  }
}

template void attention_prefill<float>(const AttentionParams<float>&, cudaStream_t);

}  // namespace assay::fast

#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/ssd.hpp"
#include "fast/kernels/ssd_require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kTile = kSsdChunk;   // rows and columns of a block's result
constexpr int kDepth = 32;         // summands staged in shared memory at a time
constexpr int kPitch = kTile + 4;  // keeps 16-byte alignment, and eight rows apart in different banks
constexpr int kSide = 16;          // a block is kSide x kSide threads, each owning kOwn x kOwn results
constexpr int kOwn = kTile / kSide;
constexpr int kThreads = kSide * kSide;
constexpr int kScanThreads = 128;

// Workspace. Positions beyond a chunk's end have d = 0 and repeat the last sum, so sums[63] is the chunk's total.
struct Workspace {
  float* d = nullptr;       // [B, M, Nh, 64]
  float2* sums = nullptr;   // [B, M, Nh, 64]  s as high + low part
  float* scores = nullptr;  // [B, M, G, 64, 64]  W[i, j] at [j][i]
  float* states = nullptr;  // [B, M, Nh, N, P]  Z, then S_in; p fastest, as the products read it
  int64_t chunk = 0;        // Q
  int64_t chunks = 0;       // M
  size_t bytes = 0;
};

template <typename T>
Workspace lay_out(const SsdParams<T>& p) {
  Workspace w;
  w.chunk = p.chunk_size == 0 ? kSsdChunk : std::min<int64_t>(p.chunk_size, kSsdChunk);
  w.chunks = ceil_div(p.length, w.chunk);
  const int64_t head_rows = p.batch * w.chunks * p.heads * kTile;
  const int64_t scores = p.batch * w.chunks * p.groups * kTile * kTile;
  const int64_t states = p.batch * w.chunks * p.heads * p.states * p.width;
  auto* base = static_cast<float*>(p.workspace);
  w.bytes = static_cast<size_t>(3 * head_rows + scores + states) * sizeof(float);
  if (base != nullptr) {
    w.d = base;
    w.sums = reinterpret_cast<float2*>(base + head_rows);
    w.scores = base + 3 * head_rows;
    w.states = w.scores + scores;
  }
  return w;
}

using Operand = float[kDepth][kPitch];

// result[r][c] += sum over the depth of rows[k][r] * columns[k][c]. The place where tensor cores go.
__device__ inline void multiply(const Operand& rows, const Operand& columns, float (&result)[kOwn][kOwn]) {
  const int row = static_cast<int>(threadIdx.x) / kSide * kOwn;
  const int column = static_cast<int>(threadIdx.x) % kSide * kOwn;
#pragma unroll 8
  for (int k = 0; k < kDepth; ++k) {
    const float4 r = *reinterpret_cast<const float4*>(&rows[k][row]);
    const float4 c = *reinterpret_cast<const float4*>(&columns[k][column]);
    const float left[kOwn] = {r.x, r.y, r.z, r.w};
    const float right[kOwn] = {c.x, c.y, c.z, c.w};
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) result[i][j] = fmaf(left[i], right[j], result[i][j]);
    }
  }
}

// operand[k][i] = value(k, i), neighbouring threads along i.
template <typename Value>
__device__ inline void fill(Operand& operand, Value value) {
#pragma unroll
  for (int e = static_cast<int>(threadIdx.x); e < kDepth * kTile; e += kThreads) {
    operand[e / kTile][e % kTile] = value(e / kTile, e % kTile);
  }
}

// operand[k][i] = value(k, i) where memory runs along k: a warp takes 8 k by 4 i, whole 32-byte sectors on the one side
// and 32 different banks on the other.
template <typename Value>
__device__ inline void fill_transposed(Operand& operand, Value value) {
  const int k = static_cast<int>(threadIdx.x) % 8;
  const int i = static_cast<int>(threadIdx.x) / 8;
#pragma unroll
  for (int row = 0; row < kTile; row += kThreads / 8) {
#pragma unroll
    for (int depth = 0; depth < kDepth; depth += 8) operand[depth + k][row + i] = value(depth + k, row + i);
  }
}

__device__ inline float decay(float2 later, float2 earlier) {
  return precise_exp((later.x - earlier.x) + (later.y - earlier.y));
}

// d and s of one (row, chunk, head) by a warp, each lane positions lane and lane + 32.
template <typename T>
__global__ void __launch_bounds__(kScanThreads) ssd_sums_kernel(SsdParams<T> p, Workspace w) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  constexpr int kWarps = kScanThreads / kWarp;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
       item < p.batch * w.chunks * p.heads; item += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t row_chunk = item / p.heads;
    const int64_t head = item - row_chunk * p.heads;
    const int64_t row = row_chunk / w.chunks;
    const int64_t first = (row_chunk - row * w.chunks) * w.chunk;
    const int64_t count = min(w.chunk, p.length - first);
    const float a = p.a[head];
    double before = 0;
#pragma unroll
    for (int half = 0; half < kTile / kWarp; ++half) {
      const int i = half * kWarp + lane;
      float d = 0;
      if (i < count) {
        const int64_t t = row * p.length + first + i;
        d = to_float(p.dt[t * p.dt_stride + head]);
        if (p.dt_bias != nullptr) d = clamp(softplus(d + to_float(p.dt_bias[head])), p.dt_min, p.dt_max);
        if (p.dt_out != nullptr) p.dt_out[t * p.heads + head] = from_float<T>(d);
      }
      double sum = static_cast<double>(d * a);
#pragma unroll
      for (int offset = 1; offset < kWarp; offset *= 2) {
        const double lower = __shfl_up_sync(kFullWarp, sum, offset);
        if (lane >= offset) sum += lower;
      }
      sum += before;
      before = __shfl_sync(kFullWarp, sum, kWarp - 1);
      const float high = static_cast<float>(sum);
      w.d[item * kTile + i] = d;
      w.sums[item * kTile + i] = make_float2(high, static_cast<float>(sum - static_cast<double>(high)));
    }
  }
}

// W[i, j] = c_i . b_j of one (row, chunk, group).
template <typename T>
__global__ void __launch_bounds__(kThreads) ssd_scores_kernel(SsdParams<T> p, Workspace w) {
  alignas(16) __shared__ Operand rows;
  alignas(16) __shared__ Operand columns;
  for (int64_t item = blockIdx.x; item < p.batch * w.chunks * p.groups; item += gridDim.x) {
    const int64_t row_chunk = item / p.groups;
    const int64_t group = item - row_chunk * p.groups;
    const int64_t row = row_chunk / w.chunks;
    const int64_t first = (row_chunk - row * w.chunks) * w.chunk;
    const int64_t count = min(w.chunk, p.length - first);
    const T* b = p.b + (row * p.length + first) * p.b_stride + group * p.states;
    const T* c = p.c + (row * p.length + first) * p.c_stride + group * p.states;
    float result[kOwn][kOwn] = {};
    for (int64_t n = 0; n < p.states; n += kDepth) {
      fill_transposed(rows, [&](int k, int j) {
        return j < count && n + k < p.states ? to_float(b[j * p.b_stride + n + k]) : 0.0f;
      });
      fill_transposed(columns, [&](int k, int i) {
        return i < count && n + k < p.states ? to_float(c[i * p.c_stride + n + k]) : 0.0f;
      });
      __syncthreads();
      multiply(rows, columns, result);
      __syncthreads();
    }
    float* scores = w.scores + item * kTile * kTile;
    const int j = static_cast<int>(threadIdx.x) / kSide * kOwn;
    const int i = static_cast<int>(threadIdx.x) % kSide * kOwn;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) store_pack<kOwn>(scores + (j + k) * kTile + i, result[k]);
  }
}

// A tile [n, p] of Z of one (row, chunk, head).
template <typename T>
__global__ void __launch_bounds__(kThreads) ssd_states_kernel(SsdParams<T> p, Workspace w) {
  alignas(16) __shared__ Operand rows;
  alignas(16) __shared__ Operand columns;
  __shared__ float weight[kTile];
  const int64_t state_tiles = ceil_div(p.states, kTile);
  const int64_t width_tiles = ceil_div(p.width, kTile);
  const int64_t tiles = state_tiles * width_tiles;
  for (int64_t item = blockIdx.x; item < p.batch * w.chunks * p.heads * tiles; item += gridDim.x) {
    const int64_t row_chunk_head = item / tiles;
    const int64_t tile = item - row_chunk_head * tiles;
    const int64_t first_n = tile / width_tiles * kTile;
    const int64_t first_p = tile % width_tiles * kTile;
    const int64_t row_chunk = row_chunk_head / p.heads;
    const int64_t head = row_chunk_head - row_chunk * p.heads;
    const int64_t group = head / (p.heads / p.groups);
    const int64_t row = row_chunk / w.chunks;
    const int64_t first = (row_chunk - row * w.chunks) * w.chunk;
    const int64_t count = min(w.chunk, p.length - first);
    const T* x = p.x + (row * p.length + first) * p.x_stride + head * p.width + first_p;
    const T* b = p.b + (row * p.length + first) * p.b_stride + group * p.states + first_n;
    const float2* sums = w.sums + row_chunk_head * kTile;
    if (threadIdx.x < kTile) {
      const int j = static_cast<int>(threadIdx.x);
      weight[j] = decay(sums[kTile - 1], sums[j]) * w.d[row_chunk_head * kTile + j];
    }
    __syncthreads();
    float result[kOwn][kOwn] = {};
    for (int64_t j = 0; j < count; j += kDepth) {
      fill(rows, [&](int k, int n) {
        return j + k < count && first_n + n < p.states ? to_float(b[(j + k) * p.b_stride + n]) : 0.0f;
      });
      fill(columns, [&](int k, int q) {
        return j + k < count && first_p + q < p.width ? weight[j + k] * to_float(x[(j + k) * p.x_stride + q]) : 0.0f;
      });
      __syncthreads();
      multiply(rows, columns, result);
      __syncthreads();
    }
    float* states = w.states + row_chunk_head * p.states * p.width;
    const int64_t n = first_n + static_cast<int>(threadIdx.x) / kSide * kOwn;
    const int64_t q = first_p + static_cast<int>(threadIdx.x) % kSide * kOwn;
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        if (n + i < p.states && q + k < p.width) states[(n + i) * p.width + q + k] = result[i][k];
      }
    }
  }
}

// Z of every chunk becomes the state the chunk starts from; one thread a (row, head, n, p).
template <typename T>
__global__ void __launch_bounds__(kThreads) ssd_passing_kernel(SsdParams<T> p, Workspace w) {
  constexpr int kAhead = 4;  // chunks whose loads are in flight together
  const int64_t head_size = p.states * p.width;
  const int64_t chunk_step = p.heads * head_size;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t item = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; item < p.batch * p.heads * head_size;
       item += step) {
    const int64_t row_head = item / head_size;
    const int64_t at = item - row_head * head_size;
    const int64_t row = row_head / p.heads;
    const int64_t head = row_head - row * p.heads;
    const int64_t n = at / p.width;
    const int64_t outside = row_head * head_size + (at - n * p.width) * p.states + n;  // [B, Nh, P, N]
    float* z = w.states + (row * w.chunks * p.heads + head) * head_size + at;
    const float2* sums = w.sums + (row * w.chunks * p.heads + head) * kTile + kTile - 1;
    float state = p.initial_state != nullptr ? p.initial_state[outside] : 0.0f;
    for (int64_t first = 0; first < w.chunks; first += kAhead) {
      float ends[kAhead], decays[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        ends[k] = decays[k] = 0.0f;
        if (first + k < w.chunks) {
          ends[k] = z[(first + k) * chunk_step];
          const float2 total = sums[(first + k) * p.heads * kTile];
          decays[k] = precise_exp(total.x + total.y);
        }
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (first + k < w.chunks) {
          z[(first + k) * chunk_step] = state;
          state = fmaf(decays[k], state, ends[k]);
        }
      }
    }
    if (p.final_state != nullptr) p.final_state[outside] = state;
  }
}

// A tile [i, p] of y of one (row, chunk, head).
template <typename T>
__global__ void __launch_bounds__(kThreads, 2) ssd_output_kernel(SsdParams<T> p, Workspace w) {
  alignas(16) __shared__ Operand rows;
  alignas(16) __shared__ Operand columns;
  __shared__ float2 sums[kTile];
  __shared__ float from_start[kTile];
  __shared__ float d[kTile];
  const int64_t width_tiles = ceil_div(p.width, kTile);
  for (int64_t item = blockIdx.x; item < p.batch * w.chunks * p.heads * width_tiles; item += gridDim.x) {
    const int64_t row_chunk_head = item / width_tiles;
    const int64_t first_p = (item - row_chunk_head * width_tiles) * kTile;
    const int64_t row_chunk = row_chunk_head / p.heads;
    const int64_t head = row_chunk_head - row_chunk * p.heads;
    const int64_t group = head / (p.heads / p.groups);
    const int64_t row = row_chunk / w.chunks;
    const int64_t chunk = row_chunk - row * w.chunks;
    const int64_t first = chunk * w.chunk;
    const int64_t count = min(w.chunk, p.length - first);
    const T* x = p.x + (row * p.length + first) * p.x_stride + head * p.width + first_p;
    const T* c = p.c + (row * p.length + first) * p.c_stride + group * p.states;
    const float* scores = w.scores + (row_chunk * p.groups + group) * kTile * kTile;
    const float* states = w.states + row_chunk_head * p.states * p.width + first_p;
    if (threadIdx.x < kTile) {
      const int i = static_cast<int>(threadIdx.x);
      const float2 sum = w.sums[row_chunk_head * kTile + i];
      sums[i] = sum;
      from_start[i] = precise_exp(sum.x + sum.y);
      d[i] = w.d[row_chunk_head * kTile + i];
    }
    __syncthreads();

    float result[kOwn][kOwn] = {};
    for (int j = 0; j < count; j += kDepth) {
      fill(rows, [&](int k, int i) {
        // Selected, not multiplied by 0: above the diagonal the decay is a growth and may overflow.
        return j + k <= i ? scores[(j + k) * kTile + i] * d[j + k] * decay(sums[i], sums[j + k]) : 0.0f;
      });
      fill(columns, [&](int k, int q) {
        return j + k < count && first_p + q < p.width ? to_float(x[(j + k) * p.x_stride + q]) : 0.0f;
      });
      __syncthreads();
      multiply(rows, columns, result);
      __syncthreads();
    }
    if (chunk > 0 || p.initial_state != nullptr) {
      for (int64_t n = 0; n < p.states; n += kDepth) {
        fill_transposed(rows, [&](int k, int i) {
          return i < count && n + k < p.states ? from_start[i] * to_float(c[i * p.c_stride + n + k]) : 0.0f;
        });
        fill(columns, [&](int k, int q) {
          return n + k < p.states && first_p + q < p.width ? states[(n + k) * p.width + q] : 0.0f;
        });
        __syncthreads();
        multiply(rows, columns, result);
        __syncthreads();
      }
    }

    const float skip = p.skip[head];
    T* y = p.y + ((row * p.length + first) * p.heads + head) * p.width + first_p;
    const int i = static_cast<int>(threadIdx.x) / kSide * kOwn;
    const int q = static_cast<int>(threadIdx.x) % kSide * kOwn;
#pragma unroll
    for (int r = 0; r < kOwn; ++r) {
#pragma unroll
      for (int k = 0; k < kOwn; ++k) {
        if (i + r < count && first_p + q + k < p.width) {
          const float value = fmaf(skip, to_float(x[(i + r) * p.x_stride + q + k]), result[r][k]);
          y[(i + r) * p.heads * p.width + q + k] = from_float<T>(value);
        }
      }
    }
  }
}

template <typename T>
void require_sizes(const SsdParams<T>& p) {
  require_ssd_sizes("ssd_chunked", p);
  require_range("ssd_chunked", "length", p.length, 1, kAnySize);
  require_range("ssd_chunked", "chunk_size", p.chunk_size, 0, kAnySize);
}

}  // namespace

template <typename T>
size_t ssd_workspace_bytes(const SsdParams<T>& p) {
  require_sizes(p);
  return lay_out(p).bytes;
}

template <typename T>
void ssd_chunked(const SsdParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "ssd_chunked";
  require_sizes(p);
  require_ssd_operands(kName, p);
  require_pointer(kName, "workspace", p.workspace);
  const Workspace w = lay_out(p);
  const int64_t row_chunks = p.batch * w.chunks;
  const int64_t width_tiles = ceil_div(p.width, kTile);
  launch(kName, ssd_sums_kernel<T>, ceil_div(row_chunks * p.heads, kScanThreads / kWarp), kScanThreads, stream, p, w);
  launch(kName, ssd_scores_kernel<T>, row_chunks * p.groups, kThreads, stream, p, w);
  launch(kName, ssd_states_kernel<T>, row_chunks * p.heads * ceil_div(p.states, kTile) * width_tiles, kThreads, stream,
         p, w);
  launch(kName, ssd_passing_kernel<T>, ceil_div(p.batch * p.heads * p.states * p.width, kThreads), kThreads, stream, p,
         w);
  launch(kName, ssd_output_kernel<T>, row_chunks * p.heads * width_tiles, kThreads, stream, p, w);
}

template size_t ssd_workspace_bytes<float>(const SsdParams<float>&);
template void ssd_chunked<float>(const SsdParams<float>&, cudaStream_t);

}  // namespace assay::fast

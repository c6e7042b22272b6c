#include <cuda_pipeline.h>

#include <type_traits>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/ssd.hpp"
#include "fast/kernels/ssd_require.hpp"
#include "fast/kernels/ssd_scores.cuh"
#include "fast/kernels/ssd_tile.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kBlocks = 4;  // on a multiprocessor
constexpr int kSlices = kSsdRows / kSsdDepth;
static_assert(kSsdRows == kSsdThreads);  // a thread a position

struct Shared {
  float rows[2][kSsdDepth * kSsdRows];
  float columns[2][kSsdDepth * kSsdColumns];
  // exp(s_i - s_j) for j of slice q and i behind the slice is from_slice[q][i] * to_slice[j]: both exponents are at
  // most 0, as the sums only fall.
  float from_slice[kSlices][kSsdRows];
  float to_slice[kSsdRows];             // d_j exp(s_last of the slice - s_j)
  float diagonal[kSsdRows][kSsdDepth];  // d_j exp(s_i - s_j) for i, j of one slice, by j
  float to_end[kSsdRows];               // d_j exp(s_Q - s_j)
  float from_start[kSsdRows];           // exp(s_i)
  float2 sums[kSsdRows];                // s as high + low part
  double warp_sums[kSsdThreads / kWarp];
  unsigned long long item;
};

// 64 columns p of one (chunk, row, head).
template <typename T>
struct Item {
  int64_t chunk, chain, head, group, first_p;
  int64_t start;        // position in [B, L]
  int64_t row_head;     // in [B, Nh]
  int64_t chunk_group;  // in [B, M, G]
  float* state;         // S_in [N, P] from column first_p on
  float* next;          // of the chunk that follows
  int count;            // positions that exist
  int width;            // columns that exist
  int states;           // its rows of 128 are in the workspace, so it is small
  bool is_last, has_start, has_high;
  SsdPlace at;
  // Packs that a thread brings to a slice: at rows line + 4 r of the first, line + 8 r of the second operand.
  int row_line, row_at;
  int column_line, column_at;

  __device__ Item(const SsdParams<T>& p, const SsdWorkspace& w, int64_t item) {
    const int64_t chains = p.batch * p.heads * w.width_tiles;
    chunk = item / chains;
    chain = item - chunk * chains;
    row_head = chain / w.width_tiles;
    first_p = (chain - row_head * w.width_tiles) * kSsdColumns;
    const int64_t row = row_head / p.heads;
    head = row_head - row * p.heads;
    group = head / (p.heads / p.groups);
    const int64_t first = chunk * w.chunk;
    const int64_t row_chunk = row * w.chunks + chunk;
    chunk_group = row_chunk * p.groups + group;
    start = row * p.length + first;
    state = w.states + (row_chunk * p.heads + head) * p.states * p.width + first_p;
    next = state + p.heads * p.states * p.width;
    count = static_cast<int>(min(w.chunk, p.length - first));
    width = static_cast<int>(min(p.width - first_p, int64_t{kSsdColumns}));
    states = static_cast<int>(p.states);
    is_last = chunk + 1 == w.chunks;
    has_start = chunk > 0 || p.initial_state != nullptr;
    has_high = count > kSsdHalf;
    at = ssd_place(static_cast<int>(item % 4));
    const auto thread = static_cast<int>(threadIdx.x);
    row_line = thread / (kSsdRows / 4);
    row_at = thread % (kSsdRows / 4) * 4;
    column_line = thread / (kSsdColumns / 4);
    column_at = thread % (kSsdColumns / 4) * 4;
  }
};

// States pass between blocks of one launch, so they are read where they were written, in L2.
template <bool kPacked>
__device__ inline void load_state(const float* from, int left, float (&to)[4]) {
  if constexpr (kPacked) {
    const float4 four = left > 0 ? __ldcg(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) to[k] = k < left ? __ldcg(from + k) : 0.0f;
  }
}

// Four neighbours to shared memory. Packed floats: without passing through registers, under way until a wait.
template <bool kPacked, typename T>
__device__ inline void copy_four(float* to, const T* from, int left) {
  if (kPacked && std::is_same_v<T, float> && left > 0) {
    __pipeline_memcpy_async(to, from, 4 * sizeof(float));
  } else {
    float four[4];
    load_four<kPacked>(from, left, four);
    store_pack<4>(to, four);
  }
}

// The same of a state.
template <bool kPacked>
__device__ inline void copy_state(float* to, const float* from, int left) {
  if (kPacked) {
    copy_four<true>(to, from, left);
  } else {
    float four[4];
    load_state<false>(from, left, four);
    store_pack<4>(to, four);
  }
}

__device__ inline void await(const int64_t* progress, int64_t chunks) {
  if (threadIdx.x == 0) {
    while (*static_cast<const volatile int64_t*>(progress) < chunks) __nanosleep(40);
    __threadfence();
  }
  __syncthreads();
}

__device__ inline void announce(int64_t* progress, int64_t chunks) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    *static_cast<volatile int64_t*>(progress) = chunks;
  }
}

__device__ inline float decay(float2 later, float2 earlier) {
  return precise_exp((later.x - earlier.x) + (later.y - earlier.y));
}

// d and s, and the decays made of them. Positions beyond the chunk's end have d = 0 and repeat the last sum, so
// sums[127] is the chunk's total.
template <typename T>
__device__ inline void fill_decays(const SsdParams<T>& p, const Item<T>& item, Shared& shared) {
  const int i = static_cast<int>(threadIdx.x);
  const int lane = i % kWarp;
  float d = 0;
  if (i < item.count) {
    d = to_float(p.dt[(item.start + i) * p.dt_stride + item.head]);
    if (p.dt_bias != nullptr) d = clamp(softplus(d + to_float(p.dt_bias[item.head])), p.dt_min, p.dt_max);
    if (p.dt_out != nullptr && item.first_p == 0) p.dt_out[(item.start + i) * p.heads + item.head] = from_float<T>(d);
  }
  double sum = static_cast<double>(d * p.a[item.head]);
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const double lower = __shfl_up_sync(kFullWarp, sum, offset);
    if (lane >= offset) sum += lower;
  }
  if (lane == kWarp - 1) shared.warp_sums[i / kWarp] = sum;
  __syncthreads();
  double before = 0;
  for (int warp = 0; warp < i / kWarp; ++warp) before += shared.warp_sums[warp];
  sum += before;
  const float high = static_cast<float>(sum);
  const float2 own = make_float2(high, static_cast<float>(sum - static_cast<double>(high)));
  shared.sums[i] = own;
  __syncthreads();
  const int slice = i / kSsdDepth * kSsdDepth;
  for (int q = 0; q < i / kSsdDepth; ++q) {
    shared.from_slice[q][i] = decay(own, shared.sums[q * kSsdDepth + kSsdDepth - 1]);
  }
  shared.to_slice[i] = d * decay(shared.sums[slice + kSsdDepth - 1], own);
  shared.to_end[i] = d * decay(shared.sums[kSsdRows - 1], own);
  shared.from_start[i] = precise_exp(own.x + own.y);
#pragma unroll 2
  for (int k = 0; k < kSsdDepth; ++k) shared.diagonal[i][k] = d * decay(shared.sums[slice + k], own);
}

// The end state of states [first_n, first_n + 128), to where the next chunk or the caller expects it.
template <bool kPacked, typename T>
__device__ inline void pass_states(const SsdParams<T>& p, const Item<T>& item, int first_n, float chunk_decay,
                                   SsdResult& z) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int n = first_n + h * kSsdHalf + item.at.row;
    if (item.has_start) {
      float before[4][2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int g = 0; g < 2; ++g) {
          const int q = g * 32 + item.at.column;
          load_state<kPacked>(item.state + (n + i) * p.width + q, n + i < item.states ? item.width - q : 0,
                              before[i][g]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int g = 0; g < 2; ++g) {
#pragma unroll
          for (int k = 0; k < 4; ++k) z[h][i][g][k] = fmaf(chunk_decay, before[i][g][k], z[h][i][g][k]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int q = g * 32 + item.at.column;
        if (!item.is_last) {
          store_four<kPacked>(item.next + (n + i) * p.width + q, n + i < item.states ? item.width - q : 0, z[h][i][g]);
        } else if (n + i < item.states) {
          float* final = p.final_state + (item.row_head * p.width + item.first_p + q) * p.states + n + i;
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            if (q + k < item.width) final[k * p.states] = z[h][i][g][k];
          }
        }
      }
    }
  }
}

// What is multiplied, in this order:
//   kStates     Z of states [first_n, first_n + 128), d_j exp(s_Q - s_j) b_j by x_j
//   kFromStart  S_in c_i, c_i by S_in
//   kWithin     the rest of y_i, exp(s_i - s_j) d_j W[i, j] by x_j
enum class Phase { kStates, kFromStart, kWithin };

// Slices of a phase on their way to shared memory. One loop serves the three phases.
template <typename T, bool kPacked>
class Slices {
 public:
  __device__ Slices(const SsdParams<T>& p, const SsdWorkspace& w, const Item<T>& item, Shared& shared)
      : p_(p), w_(w), item_(item), shared_(shared) {}

  __device__ int begin(Phase phase, int first_n) {
    phase_ = phase;
    const bool is_states = phase == Phase::kStates, is_from_start = phase == Phase::kFromStart;
    const int summands = is_from_start ? item_.states : item_.count;
    row_width_ = (is_states ? item_.states - first_n : item_.has_high ? kSsdRows : kSsdHalf) - item_.row_at;
    row_lines_ = summands - item_.row_line;
    column_lines_ = summands - item_.column_line;
    if (is_states) {
      rows_ = p_.b + (item_.start + item_.row_line) * p_.b_stride + item_.group * p_.states + first_n + item_.row_at;
    } else if (is_from_start) {
      rows_ = w_.c + (item_.chunk_group * p_.states + item_.row_line) * kSsdRows + item_.row_at;
    } else {
      rows_ = w_.scores + (item_.chunk_group * kSsdRows + item_.row_line) * kSsdRows + item_.row_at;
    }
    if (is_from_start) {
      columns_ = item_.state + item_.column_line * p_.width + item_.column_at;
    } else {
      columns_ = p_.x + (item_.start + item_.column_line) * p_.x_stride + item_.head * p_.width + item_.first_p +
                 item_.column_at;
    }
    return static_cast<int>(ceil_div(summands, kSsdDepth));
  }

  __device__ void load(int slice) {
    const int first = slice * kSsdDepth;
    float* columns = shared_.columns[slice % 2] + item_.column_line * kSsdColumns + item_.column_at;
    const int width = item_.width - item_.column_at;
    if (phase_ == Phase::kFromStart) {
      const auto* state = static_cast<const float*>(columns_);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        copy_state<kPacked>(columns + r * 8 * kSsdColumns, state + r * 8 * p_.width,
                            first + r * 8 < column_lines_ ? width : 0);
      }
      columns_ = state + kSsdDepth * p_.width;
    } else {
      const auto* x = static_cast<const T*>(columns_);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        copy_four<kPacked>(columns + r * 8 * kSsdColumns, x + r * 8 * p_.x_stride,
                           first + r * 8 < column_lines_ ? width : 0);
      }
      columns_ = x + kSsdDepth * p_.x_stride;
    }
    if (phase_ == Phase::kStates) {
      const auto* b = static_cast<const T*>(rows_);
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        copy_four<kPacked>(row(slice, r), b + r * 4 * p_.b_stride, first + r * 4 < row_lines_ ? row_width_ : 0);
      }
      rows_ = b + kSsdDepth * p_.b_stride;
    } else {
      const auto* rows = static_cast<const float*>(rows_);
      const int needed = phase_ == Phase::kFromStart || item_.row_at >= first ? row_width_ : 0;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        copy_four<true>(row(slice, r), rows + r * 4 * kSsdRows, first + r * 4 < row_lines_ ? needed : 0);
      }
      rows_ = rows + kSsdDepth * kSsdRows;
    }
    __pipeline_commit();
  }

  // Waits for this thread's packs and scales them where they lie.
  __device__ void finish(int slice) {
    const int first = slice * kSsdDepth;
    __pipeline_wait_prior(0);
    if (phase_ == Phase::kFromStart) return;
    const int behind = item_.row_at - first;
    if (phase_ == Phase::kWithin && behind < 0) return;
    const bool is_diagonal = behind < kSsdDepth;
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int line = r * 4 + item_.row_line;
      float pack[4];
      load_pack<4>(row(slice, r), pack);
      if (phase_ == Phase::kStates) {
        const float weight = shared_.to_end[first + line];
#pragma unroll
        for (int k = 0; k < 4; ++k) pack[k] *= weight;
      } else {
        const float by = is_diagonal ? 1.0f : shared_.to_slice[first + line];
        float factors[4];
        load_pack<4>(is_diagonal ? shared_.diagonal[first + line] + behind : shared_.from_slice[slice] + item_.row_at,
                     factors);
        // Selected, not multiplied by 0: above the diagonal the decay is a growth and may overflow.
#pragma unroll
        for (int k = 0; k < 4; ++k) pack[k] = line <= behind + k ? pack[k] * (factors[k] * by) : 0.0f;
      }
      store_pack<4>(row(slice, r), pack);
    }
  }

 private:
  __device__ float* row(int slice, int r) const {
    return shared_.rows[slice % 2] + (r * 4 + item_.row_line) * kSsdRows + item_.row_at;
  }

  const SsdParams<T>& p_;
  const SsdWorkspace& w_;
  const Item<T>& item_;
  Shared& shared_;
  Phase phase_ = Phase::kStates;
  const void* rows_ = nullptr;     // this thread's packs of the next slice: of b, c or W
  const void* columns_ = nullptr;  // of x or S_in
  int row_width_ = 0;              // elements from there on
  int row_lines_ = 0;              // summands from there on
  int column_lines_ = 0;
};

__device__ inline void scale_rows(const float (&by)[kSsdRows], SsdPlace at, SsdResult& result) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float factor = by[h * kSsdHalf + at.row + i];
#pragma unroll
      for (int g = 0; g < 2; ++g) {
#pragma unroll
        for (int k = 0; k < 4; ++k) result[h][i][g][k] *= factor;
      }
    }
  }
}

__device__ inline void clear(SsdResult& result) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int g = 0; g < 2; ++g) {
#pragma unroll
        for (int k = 0; k < 4; ++k) result[h][i][g][k] = 0.0f;
      }
    }
  }
}

template <bool kPacked, typename T>
__device__ inline void write_y(const SsdParams<T>& p, const Item<T>& item, const SsdResult& y) {
  const float skip = p.skip[item.head];
  const T* from = p.x + item.start * p.x_stride + item.head * p.width + item.first_p;
  T* to = p.y + (item.start * p.heads + item.head) * p.width + item.first_p;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = h * kSsdHalf + item.at.row + i;
      if (position >= item.count) continue;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int q = g * 32 + item.at.column;
        float x[4];
        load_four<kPacked>(from + position * p.x_stride + q, item.width - q, x);
#pragma unroll
        for (int k = 0; k < 4; ++k) x[k] = fmaf(skip, x[k], y[h][i][g][k]);
        store_four<kPacked>(to + position * p.heads * p.width + q, item.width - q, x);
      }
    }
  }
}

// Items are taken in the order of chunks, so what a block waits for is always in the hands of a block that runs.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kSsdThreads, kBlocks) ssd_chunk_kernel(SsdParams<T> p, SsdWorkspace w) {
  Shared& shared = *reinterpret_cast<Shared*>(dynamic_shared());
  const int64_t items = p.batch * p.heads * w.width_tiles * w.chunks;
  for (int64_t taken = blockIdx.x; taken < items; taken += gridDim.x) {
    __syncthreads();
    if (threadIdx.x == 0) shared.item = atomicAdd(w.ticket, 1ULL);
    __syncthreads();
    const Item<T> item(p, w, static_cast<int64_t>(shared.item));
    fill_decays(p, item, shared);
    __syncthreads();

    const bool has_states = !item.is_last || p.final_state != nullptr;
    const float2 total = shared.sums[kSsdRows - 1];
    const float chunk_decay = precise_exp(total.x + total.y);
    const Phase first_of_y = item.has_start ? Phase::kFromStart : Phase::kWithin;
    if (!has_states && item.chunk > 0) await(w.progress + item.chain, item.chunk);
    Phase phase = has_states ? Phase::kStates : first_of_y;
    int first_n = 0;
    const int first_row = item.at.row / kSsdDepth * kSsdDepth;
    SsdResult result;
    clear(result);
    Slices<T, kPacked> slices(p, w, item, shared);
#pragma unroll 1
    for (;;) {
      const int count = slices.begin(phase, first_n);
      walk_slices(
          count, [&](int slice) { slices.load(slice); }, [&](int slice) { slices.finish(slice); },
          [&](int slice) {
            const int first = slice * kSsdDepth;
            const bool is_within = phase == Phase::kWithin;
            const bool has_high = phase == Phase::kStates ? item.states - first_n > kSsdHalf : item.has_high;
            ssd_multiply(shared.rows[slice % 2], shared.columns[slice % 2], !is_within || first <= first_row,
                         has_high && (!is_within || first <= kSsdHalf + first_row), item.at, result);
          });
      if (phase == Phase::kWithin) break;
      if (phase == Phase::kFromStart) {
        scale_rows(shared.from_start, item.at, result);
        phase = Phase::kWithin;
        continue;
      }
      if (item.chunk > 0) await(w.progress + item.chain, item.chunk);
      pass_states<kPacked>(p, item, first_n, chunk_decay, result);
      clear(result);
      first_n += kSsdRows;
      if (first_n >= item.states) {
        if (!item.is_last) announce(w.progress + item.chain, item.chunk + 1);
        phase = first_of_y;
      }
    }
    write_y<kPacked>(p, item, result);
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
  return lay_out_ssd(p).bytes;
}

template <typename T>
void ssd_chunked(const SsdParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "ssd_chunked";
  require_sizes(p);
  require_ssd_operands(kName, p);
  require_pointer(kName, "workspace", p.workspace);
  const SsdWorkspace w = lay_out_ssd(p);
  const bool is_packed =
      is_packable<4, T>({p.x, p.b, p.c, p.y}, {p.x_stride, p.b_stride, p.c_stride, p.width, p.states});
  launch(kName, is_packed ? ssd_scores_kernel<T, true> : ssd_scores_kernel<T, false>,
         p.batch * w.chunks * p.groups * kSsdScoreTiles, kSsdThreads, stream, p, w);
  if (p.initial_state != nullptr) {
    launch(kName, ssd_start_kernel<T>,
           p.batch * p.heads * ceil_div(p.states, kSsdStartSide) * ceil_div(p.width, kSsdStartSide), kSsdThreads,
           stream, p, w);
  }
  launch_shared(kName, is_packed ? ssd_chunk_kernel<T, true> : ssd_chunk_kernel<T, false>,
                p.batch * p.heads * w.width_tiles * w.chunks, kSsdThreads, sizeof(Shared), stream, p, w);
}

template size_t ssd_workspace_bytes<float>(const SsdParams<float>&);
template void ssd_chunked<float>(const SsdParams<float>&, cudaStream_t);

}  // namespace assay::fast

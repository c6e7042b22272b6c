#include <algorithm>
#include <numbers>

#include "fast/kernels/attention.hpp"
#include "fast/kernels/attention_columns.cuh"
#include "fast/kernels/attention_require.hpp"
#include "fast/kernels/attention_tile.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

// 2^y within 2 ulp. A softmax divides by the sum of the same powers: what error they share falls out.
__device__ inline float power_of_two(float y) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(y));
  return power;
}

// sum[i][j] += rows[k][i] columns[k][j] over k in [kFrom, kTo), ascending.
template <typename Tile, int kFrom, int kTo>
__device__ inline void multiply(const float* rows, const float* columns, float (&sum)[Tile::kOwn][Tile::kOwn]) {
#pragma unroll
  for (int k = kFrom; k < kTo; ++k) {
    float left[Tile::kOwn], right[Tile::kOwn];
#pragma unroll
    for (int i = 0; i < Tile::kOwn; i += 4) {
      const float4 row = *reinterpret_cast<const float4*>(rows + k * Tile::kRowPitch + i);
      const float4 column = *reinterpret_cast<const float4*>(columns + k * Tile::kPitch + i / 4 * Tile::kBand);
      left[i] = row.x, left[i + 1] = row.y, left[i + 2] = row.z, left[i + 3] = row.w;
      right[i] = column.x, right[i + 1] = column.y, right[i + 2] = column.z, right[i + 3] = column.w;
    }
#pragma unroll
    for (int i = 0; i < Tile::kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::kOwn; ++j) sum[i][j] = fmaf(left[i], right[j], sum[i][j]);
    }
  }
}

// scale: with log2(e) in it.
template <typename T, typename Tile>
__global__ void __launch_bounds__(Tile::kThreads, Tile::kBlocks)
    attention_prefill_kernel(AttentionParams<T> p, float scale, bool is_packed) {
  constexpr int kOwn = Tile::kOwn, kSlice = Tile::kSlice, kAcross = Tile::kAcross, kColumns = Tile::kColumns;
  constexpr int kRowPitch = Tile::kRowPitch, kPitch = Tile::kPitch, kBand = Tile::kBand, kRows = Tile::kRows;
  const int width = static_cast<int>(p.width), value_width = static_cast<int>(p.value_width);
  const int slices = (width + kSlice - 1) / kSlice, passes = (value_width + kColumns - 1) / kColumns;
  float* query = dynamic_shared();                                              // [slices kSlice][kRowPitch]
  float* weights = query + (Tile::kStreams ? 0 : slices * kSlice * kRowPitch);  // [kColumns][kRowPitch]
  float* staged = weights + kColumns * kRowPitch;  // two of columns [kSlice][kPitch], then queries [kSlice][kRowPitch]
  __shared__ int limit[kRows];                     // the row's own column, the last that it sees
  __shared__ float most[kRows], sum[kRows];        // of the scores so far
  __shared__ float fade[kRows];                    // of what was summed before this tile
  __shared__ int64_t offset[Tile::kStreams ? kRows : 1];  // of the row's query
  __shared__ unsigned real[kColumns / kWarp];             // a bit for each key of the tile

  const int64_t group = p.heads / p.kv_heads;
  const int64_t rows = p.length * group;
  const int64_t row_tiles = ceil_div(rows, kRows);
  const int64_t pairs = p.batch * p.kv_heads;
  const int64_t past = past_of(p);
  const int columns = static_cast<int>(past + p.length);
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kWarp;
  const int across = thread % kAcross, own_row = thread / kAcross * kOwn;
  const Share key_from = key_share<Tile>(thread);
  const Share value_from = is_packed ? value_share<Tile, 4>(thread) : value_share<Tile, 1>(thread);

  for (int64_t item = blockIdx.x; item < pairs * row_tiles; item += gridDim.x) {
    // The last rows, which see the most keys, first: short tiles fill up the end.
    const int64_t first = (row_tiles - 1 - item / pairs) * kRows;
    const int64_t pair = item % pairs;
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int count = static_cast<int>(min(rows - first, int64_t{kRows}));
    const T* keys = p.k + pair * p.capacity * p.width + key_from.row * width + key_from.lane;
    const T* values = p.v + pair * p.capacity * p.value_width + value_from.row * value_width + value_from.lane;
    const uint8_t* mask = p.mask == nullptr ? nullptr : p.mask + batch * p.mask_stride;
    const int first_limit = static_cast<int>(past + first / group);

    // Keys from the first real ones up to the last query's own column; all of them where a query sees none, which is
    // the first if any.
    int begin = 0, end = static_cast<int>(past + (first + count - 1) / group) + 1;
    if (mask != nullptr) {
      int c = 0;
      while (c <= first_limit) {
        const int own = c + thread;
        if (__syncthreads_or(own <= first_limit && mask[own] != 0) != 0) break;
        c += Tile::kThreads;
      }
      if (c <= first_limit) {
        begin = c / kColumns * kColumns;
      } else {
        end = columns;
      }
    }

    // A slice of the keys (phase 0), or of the values of a pass.
    const auto stage = [&](int which, int key, int phase, int s) {
      float* slice = staged + which * Tile::kStaged;
      if (phase == 0) {
        const Share share = key_share<Tile>(thread);
        const int lane = s * kSlice;
        if constexpr (Tile::kStreams) {
          stage_queries<Tile>(slice + kSlice * kPitch, p.q + lane, offset, thread, count, width - lane);
        }
        const T* from = keys + (static_cast<int64_t>(key) * width + lane);
        if (key + kColumns <= columns && lane + kSlice <= width) {
          stage_keys<Tile, true>(slice + share.at, from, width, share, kColumns, kSlice);
        } else {
          stage_keys<Tile, false>(slice + share.at, from, width, share, columns - key, width - lane);
        }
      } else {
        const int lane = (phase - 1) * kColumns;
        key += s * kSlice;
        const Share share = is_packed ? value_share<Tile, 4>(thread) : value_share<Tile, 1>(thread);
        const T* from = values + (static_cast<int64_t>(key) * value_width + lane);
        if (!is_packed) {
          stage_values<Tile, 1, false>(slice + share.at, from, value_width, share, columns - key, value_width - lane);
        } else if (key + kSlice <= columns && lane + kColumns <= value_width) {
          stage_values<Tile, 4, true>(slice + share.at, from, value_width, share, kSlice, kColumns);
        } else {
          stage_values<Tile, 4, false>(slice + share.at, from, value_width, share, columns - key, value_width - lane);
        }
      }
    };
    if constexpr (!Tile::kStreams) stage(0, begin, 0, 0);

    for (int r = thread; r < kRows; r += Tile::kThreads) {
      limit[r] = static_cast<int>(past + (first + r) / group);
      most[r] = kUnseen;
      sum[r] = 0;
    }
    __syncthreads();
    // Of tile row r: its query, counted from the first new column, and its head.
    const auto query_of = [&](int r) { return limit[r] - past; };
    const auto head_of = [&](int r) { return kv_head * group + first + r - query_of(r) * group; };
    const auto offset_of = [&](int r) {
      return (batch * p.length + query_of(r)) * p.q_stride + head_of(r) * p.q_head_stride;
    };
    if constexpr (Tile::kStreams) {
      for (int r = thread; r < kRows; r += Tile::kThreads) offset[r] = r < count ? offset_of(r) : 0;
      __syncthreads();
      stage(0, begin, 0, 0);
    } else {
#pragma unroll 1
      for (int r = thread / 8; r < kRows; r += Tile::kThreads / 8) {
        const T* from = p.q + offset_of(r);
#pragma unroll 4
        for (int d = thread % 8; d < slices * kSlice; d += 8) {
          query[d * kRowPitch + r] = r < count && d < width ? to_float(from[d]) * scale : 0.0f;
        }
      }
    }

    // With more than one pass in local memory (which only an index unknown to the compiler brings about), read and
    // written once a tile: in registers they would leave none to load operands ahead of the product.
    constexpr bool kIsLocal = Tile::kPasses > 1;
    alignas(16) float result[Tile::kPasses][kOwn][kOwn] = {};
    int now = 0;  // which of the two stages
    for (int key = begin; key < end; key += kColumns) {
      const int value_slices = (min(kColumns, end - key) + kSlice - 1) / kSlice;
      bool is_real = false;
      if (mask != nullptr && threadIdx.x < kColumns) {
        const int c = key + thread;
        is_real = c < columns && mask[c] != 0;
      }
#pragma unroll 1
      for (int phase = 0; phase <= passes; ++phase) {
        const int steps = phase == 0 ? slices : value_slices;
        const float* left = phase > 0 ? weights + own_row : query + own_row;
        float part[kOwn][kOwn] = {};
#pragma unroll 1
        for (int s = 0; s < steps; ++s) {
          wait_for_copies();
          __syncthreads();  // the slice is there, and the other stage has been read
          const bool is_last = s + 1 == steps;
          const int next_phase = !is_last ? phase : phase < passes ? phase + 1 : 0;
          const int next_key = is_last && next_phase == 0 ? key + kColumns : key;
          const auto stage_next = [&] {
            if (next_key < end) stage(1 - now, next_key, next_phase, is_last ? 0 : s + 1);
          };
          const float* right = staged + now * Tile::kStaged + 4 * across;
          if constexpr (Tile::kStreams) {
            if (phase == 0) left = right - 4 * across + kSlice * kPitch + own_row;
          }
          if constexpr (Tile::kBlocks > 1) {
            stage_next();
            multiply<Tile, 0, kSlice>(left, right, part);
          } else {
            // Of a scheduler's two warps one multiplies while the other computes addresses.
            constexpr int kEarly = 6;
            const bool is_early = warp % 8 < 4;
            if (is_early) stage_next();
            multiply<Tile, 0, kEarly>(left, right, part);
            if (!is_early) stage_next();
            multiply<Tile, kEarly, kSlice>(left, right, part);
          }
          if (!Tile::kStreams || phase > 0) left += kSlice * kRowPitch;
          now = 1 - now;
        }
        if (phase > 0) {
          // A tile by itself, then onto the sum: the rounding of thousands of keys, one after the other, would pile up.
          const int pass = kIsLocal ? phase - 1 : 0;
#pragma unroll
          for (int i = 0; i < kOwn; ++i) {
            const float faded = fade[own_row + i];
#pragma unroll
            for (int j = 0; j < kOwn; ++j) result[pass][i][j] = fmaf(result[pass][i][j], faded, part[i][j]);
          }
          continue;
        }

        bool sees_all = key + kColumns <= first_limit + 1;
        if (mask != nullptr) {
          const unsigned bits = __ballot_sync(kFullWarp, is_real);
          if (threadIdx.x < kColumns && threadIdx.x % kWarp == 0) real[warp] = bits;
          __syncthreads();
#pragma unroll
          for (int w = 0; w < kColumns / kWarp; ++w) sees_all = sees_all && real[w] == kFullWarp;
        }
        if constexpr (Tile::kStreams) {
#pragma unroll
          for (int i = 0; i < kOwn; ++i) {
#pragma unroll
            for (int j = 0; j < kOwn; ++j) part[i][j] *= scale;
          }
        }
        if (!sees_all) {
#pragma unroll
          for (int j = 0; j < kOwn; ++j) {
            const int k = across + kAcross * j, c = key + k;
            const bool is_there = mask == nullptr || (real[k / kWarp] >> k % kWarp & 1) != 0;
#pragma unroll
            for (int i = 0; i < kOwn; ++i) {
              const bool is_seen = c <= limit[own_row + i] && is_there;
              part[i][j] = c >= columns ? kAbsent : is_seen ? part[i][j] : kUnseen;
            }
          }
        }
        float now_most[kOwn], faded[kOwn], total[kOwn];
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          now_most[i] = part[i][0];
#pragma unroll
          for (int j = 1; j < kOwn; ++j) now_most[i] = fmaxf(now_most[i], part[i][j]);
#pragma unroll
          for (int lanes = kAcross / 2; lanes > 0; lanes /= 2) {
            now_most[i] = fmaxf(now_most[i], __shfl_xor_sync(kFullWarp, now_most[i], lanes));
          }
        }
#pragma unroll
        for (int i = 0; i < kOwn; ++i) {
          const float before = most[own_row + i];
          now_most[i] = fmaxf(now_most[i], before);
          faded[i] = power_of_two(before - now_most[i]);
          total[i] = 0;
#pragma unroll
          for (int j = 0; j < kOwn; ++j) {
            part[i][j] = power_of_two(part[i][j] - now_most[i]);
            total[i] += part[i][j];
          }
          total[i] = sum_lanes<kAcross>(total[i]);
        }
        __syncwarp();  // the row's threads, which share a warp, have read the maximum before
        if (across == 0) {
#pragma unroll
          for (int i = 0; i < kOwn; ++i) {
            most[own_row + i] = now_most[i];
            fade[own_row + i] = faded[i];
            sum[own_row + i] = fmaf(sum[own_row + i], faded[i], total[i]);
          }
        }
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          float* to = weights + (across + kAcross * j) * kRowPitch + own_row;
#pragma unroll
          for (int i = 0; i < kOwn; i += 4) {
            *reinterpret_cast<float4*>(to + i) =
                make_float4(part[i][j], part[i + 1][j], part[i + 2][j], part[i + 3][j]);
          }
        }
      }
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
      const int r = own_row + i;
      if (r >= count) break;
      const float inverse = 1.0f / sum[r];
      T* y = p.y + ((batch * p.length + query_of(r)) * p.heads + head_of(r)) * p.value_width;
#pragma unroll
      for (int pass = 0; pass < Tile::kPasses; ++pass) {
#pragma unroll
        for (int band = 0; band < 2; ++band) {
          const int lane = pass * kColumns + band * kBand + 4 * across;
          float four[4];
#pragma unroll
          for (int j = 0; j < 4; ++j) four[j] = result[pass][i][4 * band + j] * inverse;
          if (is_packed) {
            if (lane < value_width) store_pack<4>(y + lane, four);
          } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
              if (lane + j < value_width) y[lane + j] = from_float<T>(four[j]);
            }
          }
        }
      }
    }
    __syncthreads();  // the next item overwrites offsets and limits
  }
}

template <typename Tile, typename T>
void start(const AttentionParams<T>& p, cudaStream_t stream) {
  const int64_t items = p.batch * p.kv_heads * ceil_div(p.length * (p.heads / p.kv_heads), Tile::kRows);
  const float scale = static_cast<float>(p.scale * std::numbers::log2e);
  launch_shared("attention_prefill", attention_prefill_kernel<T, Tile>, items, Tile::kThreads,
                Tile::floats(p.width) * static_cast<int>(sizeof(float)), stream, p, scale,
                is_packable<4, T>({p.v, p.y}, {p.value_width}));
}

}  // namespace

template <typename T>
void attention_prefill(const AttentionParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "attention_prefill";
  require_attention_sizes(kName, p);
  require_attention_operands(kName, p);
  const int64_t widest = std::max(p.width, p.value_width);
  if (widest <= 64) return start<AttentionTile<8, 1, false, 2>>(p, stream);
  if (widest <= 128) return start<AttentionTile<16, 1, false, 1>>(p, stream);
  if (widest <= 256) return start<AttentionTile<16, 2, false, 1>>(p, stream);
  start<AttentionTile<16, 4, true, 1>>(p, stream);
}

template void attention_prefill<float>(const AttentionParams<float>&, cudaStream_t);

}  // namespace assay::fast

// What ssd_chunked computes ahead of its chunks, and where: the scores of each group, C with positions fastest, the
// initial state with p fastest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/ssd.hpp"
#include "fast/kernels/ssd_tile.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {

struct SsdWorkspace {
  unsigned long long* ticket = nullptr;  // items taken so far
  int64_t* progress = nullptr;           // [B, Nh, tiles of P]  chunks whose end state is stored
  float* scores = nullptr;               // [B, M, G, 128, 128]  W[i, j] at [j][i]; the quarter above the diagonal unset
  float* c = nullptr;                    // [B, M, G, N, 128]    c_i at [n][i]
  float* states = nullptr;               // [B, M, Nh, N, P]     S_in; of chunk 0 only where there is an initial state
  int64_t chunk = 0;                     // Q
  int64_t chunks = 0;                    // M
  int64_t width_tiles = 0;
  size_t bytes = 0;
};

template <typename T>
SsdWorkspace lay_out_ssd(const SsdParams<T>& p) {
  SsdWorkspace w;
  w.chunk = p.chunk_size == 0 ? kSsdChunk : std::min<int64_t>(p.chunk_size, kSsdChunk);
  w.chunks = ceil_div(p.length, w.chunk);
  w.width_tiles = ceil_div(p.width, kSsdColumns);
  const int64_t counters = ceil_div(1 + p.batch * p.heads * w.width_tiles, 2) * 2;  // 16 bytes and their multiples
  const int64_t chunk_groups = p.batch * w.chunks * p.groups;
  const int64_t scores = chunk_groups * kSsdRows * kSsdRows;
  const int64_t c = chunk_groups * p.states * kSsdRows;
  const int64_t states = p.batch * w.chunks * p.heads * p.states * p.width;
  w.bytes = static_cast<size_t>(counters) * sizeof(int64_t) + static_cast<size_t>(scores + c + states) * sizeof(float);
  if (p.workspace != nullptr) {
    w.ticket = static_cast<unsigned long long*>(p.workspace);
    w.progress = static_cast<int64_t*>(p.workspace) + 1;
    w.scores = reinterpret_cast<float*>(static_cast<int64_t*>(p.workspace) + counters);
    w.c = w.scores + scores;
    w.states = w.c + c;
  }
  return w;
}

inline constexpr int kSsdScoreTiles = 3;  // quarters of W below and on the diagonal

// A quarter of W of one (row, chunk, group). The quarters of the first columns also write C. Clears the counters.
template <typename T, bool kPacked>
__global__ void __launch_bounds__(kSsdThreads) ssd_scores_kernel(SsdParams<T> p, SsdWorkspace w) {
  alignas(16) __shared__ float rows[2][kSsdDepth * kSsdRows];
  alignas(16) __shared__ float columns[2][kSsdDepth * kSsdColumns];
  const int64_t chains = p.batch * p.heads * w.width_tiles;
  for (int64_t k = static_cast<int64_t>(blockIdx.x) * kSsdThreads + threadIdx.x; k < chains;
       k += static_cast<int64_t>(gridDim.x) * kSsdThreads) {
    w.progress[k] = 0;
    if (k == 0) *w.ticket = 0;
  }
  const SsdPlace at = ssd_place(0);
  const int i = static_cast<int>(threadIdx.x) % kSsdHalf;
  const int n = static_cast<int>(threadIdx.x) / kSsdHalf * 8;
  for (int64_t item = blockIdx.x; item < p.batch * w.chunks * p.groups * kSsdScoreTiles; item += gridDim.x) {
    const int64_t chunk_group = item / kSsdScoreTiles;
    const auto tile = static_cast<int>(item - chunk_group * kSsdScoreTiles);
    const int first_i = tile == 0 ? 0 : kSsdHalf;
    const int first_j = tile == 2 ? kSsdHalf : 0;
    const int64_t row_chunk = chunk_group / p.groups;
    const int64_t group = chunk_group - row_chunk * p.groups;
    const int64_t row = row_chunk / w.chunks;
    const int64_t first = (row_chunk - row * w.chunks) * w.chunk;
    const int64_t count = min(w.chunk, p.length - first);
    if (first_i >= count) continue;
    const T* b = p.b + (row * p.length + first + first_j + i) * p.b_stride + group * p.states + n;
    const T* c = p.c + (row * p.length + first + first_i + i) * p.c_stride + group * p.states + n;
    const auto states = static_cast<int>(p.states);
    const int left_of_b = first_j + i < count ? states - n : 0;
    const int left_of_c = first_i + i < count ? states - n : 0;
    float* transposed = w.c + chunk_group * p.states * kSsdRows + first_i + i;
    SsdResult result = {};
    float b_packs[2][4], c_packs[2][4];
    walk_slices(
        static_cast<int>(ceil_div(states, kSsdDepth)),
        [&](int slice) {
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const int ahead = slice * kSsdDepth + 4 * k;
            load_four<kPacked>(b + ahead, left_of_b - ahead, b_packs[k]);
            load_four<kPacked>(c + ahead, left_of_c - ahead, c_packs[k]);
          }
        },
        [&](int slice) {
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            rows[slice % 2][(n + k) * kSsdRows + i] = c_packs[k / 4][k % 4];
            columns[slice % 2][(n + k) * kSsdColumns + i] = b_packs[k / 4][k % 4];
          }
        },
        [&](int slice) {
          if (first_j == 0) {
#pragma unroll
            for (int k = 0; k < 8; ++k) {
              const int state = slice * kSsdDepth + n + k;
              if (state < states) transposed[int64_t{state} * kSsdRows] = rows[slice % 2][(n + k) * kSsdRows + i];
            }
          }
          ssd_multiply(rows[slice % 2], columns[slice % 2], true, false, at, result);
        });
    float* scores = w.scores + chunk_group * kSsdRows * kSsdRows + first_i + at.row;
#pragma unroll
    for (int g = 0; g < 2; ++g) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        const float four[4] = {result[0][0][g][q], result[0][1][g][q], result[0][2][g][q], result[0][3][g][q]};
        store_pack<4>(scores + (first_j + g * 32 + at.column + q) * kSsdRows, four);
      }
    }
  }
}

inline constexpr int kSsdStartSide = 32;  // of the tiles in which the initial state is transposed

// The initial state becomes the state that chunk 0 starts from.
template <typename T>
__global__ void __launch_bounds__(kSsdThreads) ssd_start_kernel(SsdParams<T> p, SsdWorkspace w) {
  constexpr int kSide = kSsdStartSide;
  __shared__ float tile[kSide][kSide + 1];
  const int64_t state_tiles = ceil_div(p.states, kSide);
  const int64_t tiles = state_tiles * ceil_div(p.width, kSide);
  const int lane = static_cast<int>(threadIdx.x) % kSide;
  const int line = static_cast<int>(threadIdx.x) / kSide;
  for (int64_t item = blockIdx.x; item < p.batch * p.heads * tiles; item += gridDim.x) {
    const int64_t row_head = item / tiles;
    const int64_t tile_of_head = item - row_head * tiles;
    const int64_t first_n = tile_of_head % state_tiles * kSide;
    const int64_t first_p = tile_of_head / state_tiles * kSide;
    const int64_t row = row_head / p.heads;
    const float* from = p.initial_state + row_head * p.width * p.states;
    float* to = w.states + (row * w.chunks * p.heads + row_head - row * p.heads) * p.states * p.width;
#pragma unroll
    for (int k = line; k < kSide; k += kSsdThreads / kSide) {
      if (first_p + k < p.width && first_n + lane < p.states) {
        tile[k][lane] = from[(first_p + k) * p.states + first_n + lane];
      }
    }
    __syncthreads();
#pragma unroll
    for (int k = line; k < kSide; k += kSsdThreads / kSide) {
      if (first_n + k < p.states && first_p + lane < p.width) {
        to[(first_n + k) * p.width + first_p + lane] = tile[lane][k];
      }
    }
    __syncthreads();
  }
}

}  // namespace assay::fast

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
constexpr int kSlab = kDeltaRuleSlab;
constexpr int kSlabPitch = kDeltaRuleSlabPitch;
constexpr int kKeys = kDeltaRuleKeyDim;
constexpr int kRows = 8;  // rows of a product that a thread owns
constexpr int kStages = 3;

static_assert(kDepth * kKeys <= kSlab);

// The block of one tile of value columns: of a product of 128 rows each thread owns kRows times kOwn elements.
template <int kColumns_, int kOwn_, int kUnroll_>
struct PassTile {
  static constexpr int kColumns = kColumns_;
  static constexpr int kOwn = kOwn_;
  static constexpr int kPacks = kOwn / 4;
  static constexpr int kThreads = 2 * kTile / kRows * kColumns / kOwn;
  static constexpr int kPitch = kColumns + 4;
  static constexpr int kUnroll = kUnroll_;  // of four summands
  static constexpr int kSharedFloats = kStages * kSlab + (kKeys + kTile) * kPitch + 2 * 4 * kTile;
  static_assert(kColumns == 8 * kOwn);  // as wide as a warp
};

// What costs is what lanes load from shared memory, whether or not they share it: 8 x 8 elements a thread take half of
// what 4 x 4 do. Narrow tiles are for a device that wide ones do not fill.
using Wide = PassTile<64, 8, 4>;
using Narrow = PassTile<32, 4, 2>;
constexpr int64_t kEnoughWide = 192;

// result[r][4 n + c] += sum over d of left[8 r][d] * right[d][32 n + c]; rows from 8 kFirst on.
template <class Tile, int kFirst>
__device__ inline void multiply(const float* left, const float* right, int depth,
                                float (&result)[kRows][Tile::kPacks][4]) {
#pragma unroll Tile::kUnroll
  for (int d = 0; d < depth; d += 4) {
    float l[kRows][4];
#pragma unroll
    for (int r = kFirst; r < kRows; ++r) load_pack<4>(left + 8 * r * kSlabPitch + d, l[r]);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      float x[Tile::kPacks][4];
#pragma unroll
      for (int n = 0; n < Tile::kPacks; ++n) load_pack<4>(right + (d + m) * Tile::kPitch + 32 * n, x[n]);
#pragma unroll
      for (int r = kFirst; r < kRows; ++r) {
#pragma unroll
        for (int n = 0; n < Tile::kPacks; ++n) {
#pragma unroll
          for (int c = 0; c < 4; ++c) result[r][n][c] = fmaf(l[r][m], x[n][c], result[r][n][c]);
        }
      }
    }
  }
}

// The state of a tile of value columns of one (row, value head) through all chunks, in registers. In a product whose
// left side comes from k (half 0) or q (half 1) a half of the block owns the result. What is staged runs ahead by
// kStages - 1 slabs: k and q by depth, X and P X in two halves, the keys of 32 steps twice.
template <typename T, int kWidth, class Tile>
__global__ void __launch_bounds__(Tile::kThreads, 2)
    delta_rule_pass_kernel(GatedDeltaRuleParams<T> p, const DeltaRuleWithin* chunks, int64_t chunk_count) {
  constexpr int kThreads = Tile::kThreads, kColumns = Tile::kColumns, kPitch = Tile::kPitch, kPacks = Tile::kPacks;
  float* const ring = dynamic_shared();
  float* const held = ring + kStages * kSlab;    // the state at the chunk's start, [key][column]
  float* const rest = held + kKeys * kPitch;     // V, then R, then E
  float* const factors = rest + kTile * kPitch;  // of two chunks
  const int thread = static_cast<int>(threadIdx.x);
  const int side = 4 * (thread / kWarp) + delta_rule_lane_row();  // row of threads
  const int half = side / 8, ti = side % 8;
  const int own_column = 4 * delta_rule_lane_column();
  const int64_t tiles = ceil_div(p.value_dim, kColumns);
  const int key_slabs = static_cast<int>(ceil_div(p.key_dim, kDepth));
  for (int64_t item = blockIdx.x; item < p.batch * p.value_heads * tiles; item += gridDim.x) {
    const int64_t row_head = item / tiles;
    const int64_t row = row_head / p.value_heads;
    const int64_t head = row_head - row * p.value_heads;
    const int64_t key_head = head / (p.value_heads / p.key_heads);
    const int64_t column = (item - row_head * tiles) * kColumns + own_column;  // first of this thread's
    const T* q = p.q + row * p.length * p.q_stride + key_head * p.key_dim;
    const T* k = p.k + row * p.length * p.k_stride + key_head * p.key_dim;
    const T* v = p.v + row * p.length * p.v_stride + head * p.value_dim;
    T* o = p.o + (row * p.length * p.value_heads + head) * p.value_dim;
    const DeltaRuleWithin* within = chunks + row_head * chunk_count;

    int64_t next_chunk = 0;  // and slab of it: what is fetched next, and the stage that it goes to
    int next_slab = 0, next_stage = 0, stage = 0;
    auto fetch_next = [&] {
      float* to = ring + next_stage * kSlab;
      const int64_t first = next_chunk * kTile;
      const int rows = static_cast<int>(min(p.length - first, static_cast<int64_t>(kTile)));
      constexpr int kStep = kThreads / 8;
      const int i = thread / 8, quad = thread % 8 * 4;
      if (next_chunk == chunk_count) {
        // Nothing is left, and the commits stay in step.
      } else if (next_slab < key_slabs) {
        const int at = next_slab * kDepth + quad;
        const int left = static_cast<int>(p.key_dim) - at, some = left > 0 ? rows : 0;
        const T* from_k = k + (first + i) * p.k_stride + at;
        const T* from_q = q + (first + i) * p.q_stride + at;
        to += i * kSlabPitch + quad;
#pragma unroll(kWidth == 4 ? 8 : 1)
        for (int u = 0; u < kTile; u += kStep) {
          stage_quad<kWidth>(to + u * kSlabPitch, from_k, i + u < some ? left : 0);
          stage_quad<kWidth>(to + (kTile + u) * kSlabPitch, from_q, i + u < some ? left : 0);
          from_k += kStep * p.k_stride;
          from_q += kStep * p.q_stride;
        }
        if (next_slab == 0 && thread < kTile) {
          copy_async<4>(factors + (next_chunk % 2 * kTile + thread) * 4, &within[next_chunk].factors[0][0] + 4 * thread,
                        true);
        }
      } else if (next_slab < key_slabs + 2) {
        const int before = (next_slab - key_slabs) * kDepth;  // these columns of X and P X are 0 in as many rows
        const float* from = &within[next_chunk].x[i][before + quad];
        to += i * kSlabPitch + quad;
#pragma unroll
        for (int u = 0; u < kTile; u += kStep) {
          if (u + kStep <= before) continue;
          copy_async<4>(to + u * kSlabPitch, from + u * kTile, true);
          copy_async<4>(to + (kTile + u) * kSlabPitch, from + (kTile + u) * kTile, true);
        }
      } else {
        constexpr int kKeyStep = kThreads / 32;
        const int before = (next_slab - key_slabs - 2) * kDepth + thread / 32, at = thread % 32 * 4;
        const int left = static_cast<int>(p.key_dim) - at, some = left > 0 ? rows - before : 0;
        const T* from_k = k + (first + before) * p.k_stride + at;
        to += thread * 4;
        static_assert(kKeys == 128);
#pragma unroll(kWidth == 4 ? 8 : 1)
        for (int u = 0; u < kDepth; u += kKeyStep) {
          stage_quad<kWidth>(to + u * kKeys, from_k, u < some ? left : 0);
          from_k += kKeyStep * p.k_stride;
        }
      }
      commit_copies();
      next_stage = next_stage + 1 == kStages ? 0 : next_stage + 1;
      if (++next_slab == key_slabs + 4) {
        next_slab = 0;
        ++next_chunk;
      }
    };
    // The slab that is next to be used. The barrier also lets go of the one before it, which fetch_next then
    // overwrites.
    auto await = [&] {
      wait_for_copies_but<kStages - 2>();
      __syncthreads();
      const float* slab = ring + stage * kSlab;
      stage = stage + 1 == kStages ? 0 : stage + 1;
      return slab;
    };
    auto own_key = [&](int r) { return 4 * side + r % 4 + r / 4 * (kKeys / 2); };

    float state[kRows][kPacks][4];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int key = own_key(r);
      const bool is_given = p.initial_state != nullptr && key < p.key_dim;
      const float* from = is_given ? p.initial_state + (row_head * p.key_dim + key) * p.value_dim : nullptr;
#pragma unroll
      for (int n = 0; n < kPacks; ++n) load_quad<kWidth>(from, column + 32 * n, p.value_dim, is_given, state[r][n]);
    }
#pragma unroll
    for (int n = 0; n < kStages - 1; ++n) fetch_next();

    for (int64_t chunk = 0; chunk < chunk_count; ++chunk) {
      const int64_t first = chunk * kTile;
      const float* factor = factors + chunk % 2 * (4 * kTile);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int n = 0; n < kPacks; ++n) store_pack<4>(held + own_key(r) * kPitch + own_column + 32 * n, state[r][n]);
      }
      float result[kRows][kPacks][4] = {};  // K S and Q S
      const int own_row = (half * kTile + ti) * kSlabPitch;
      for (int s = 0; s < key_slabs; ++s) {
        const float* slab = await();
        if (s == 0 && half == 0) {  // each thread what it will use itself
          const int rows = static_cast<int>(min(p.length - first, static_cast<int64_t>(kTile)));
          const int left = static_cast<int>(min(p.value_dim - column, static_cast<int64_t>(kColumns)));
          const T* from = v + (first + ti) * p.v_stride + column;
          float* to = rest + ti * kPitch + own_column;
#pragma unroll(kWidth == 4 ? kRows : 1)
          for (int r = 0; r < kTile; r += 8) {
#pragma unroll
            for (int n = 0; n < kPacks; ++n) {
              stage_quad<kWidth>(to + r * kPitch + 32 * n, from + 32 * n, ti + r < rows ? left - 32 * n : 0);
            }
            from += 8 * p.v_stride;
          }
        }
        fetch_next();
        multiply<Tile, 0>(slab + own_row, held + s * kDepth * kPitch + own_column, kDepth, result);
      }
      if (half == 0) {
        if (key_slabs < kStages) wait_for_copies_but<0>();
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float scale = factor[kKeyFromStart * kTile + ti + 8 * r];
#pragma unroll
          for (int n = 0; n < kPacks; ++n) {
            float* at = rest + (ti + 8 * r) * kPitch + own_column + 32 * n;
            float value[4];
            load_pack<4>(at, value);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
              value[c] = fmaf(-scale, result[r][n][c], value[c]);
              result[r][n][c] = 0.0f;
            }
            store_pack<4>(at, value);
          }
        }
      } else {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float scale = factor[kQueryFromStart * kTile + ti + 8 * r];
#pragma unroll
          for (int n = 0; n < kPacks; ++n) {
#pragma unroll
            for (int c = 0; c < 4; ++c) result[r][n][c] *= scale;
          }
        }
      }

      // E and O. Columns of X and P X from 16 m on are 0 in rows before 16 m.
      const float* slab = await();
      fetch_next();
      multiply<Tile, 0>(slab + own_row, rest + own_column, 16, result);
      multiply<Tile, 2>(slab + own_row + 16, rest + 16 * kPitch + own_column, 16, result);
      slab = await();
      fetch_next();
      multiply<Tile, 4>(slab + own_row, rest + 32 * kPitch + own_column, 16, result);
      multiply<Tile, 6>(slab + own_row + 16, rest + 48 * kPitch + own_column, 16, result);
      __syncthreads();  // R has been read
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = ti + 8 * r;
        const float to_end = factor[kKeyToEnd * kTile + i];
#pragma unroll
        for (int n = 0; n < kPacks; ++n) {
          if (half == 0) {
#pragma unroll
            for (int c = 0; c < 4; ++c) result[r][n][c] *= to_end;
            store_pack<4>(rest + i * kPitch + own_column + 32 * n, result[r][n]);
          } else if (first + i < p.length) {
            store_quad<kWidth>(o + (first + i) * p.value_heads * p.value_dim, column + 32 * n, p.value_dim,
                               result[r][n]);
          }
        }
      }

      const float decay = factor[kChunkDecay * kTile];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int n = 0; n < kPacks; ++n) {
#pragma unroll
          for (int c = 0; c < 4; ++c) state[r][n][c] *= decay;
        }
      }
      for (int part = 0; part < 2; ++part) {
        const float* keys = await() + 4 * side;
        fetch_next();
        const float* e = rest + part * kDepth * kPitch + own_column;
#pragma unroll(4 * Tile::kUnroll)
        for (int j = 0; j < kDepth; ++j) {
          float key[2][4], x[kPacks][4];
          load_pack<4>(keys + j * kKeys, key[0]);
          load_pack<4>(keys + j * kKeys + kKeys / 2, key[1]);
#pragma unroll
          for (int n = 0; n < kPacks; ++n) load_pack<4>(e + j * kPitch + 32 * n, x[n]);
#pragma unroll
          for (int r = 0; r < kRows; ++r) {
#pragma unroll
            for (int n = 0; n < kPacks; ++n) {
#pragma unroll
              for (int c = 0; c < 4; ++c) state[r][n][c] = fmaf(key[r / 4][r % 4], x[n][c], state[r][n][c]);
            }
          }
        }
      }
    }
    if (p.final_state != nullptr) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int key = own_key(r);
        if (key >= p.key_dim) continue;
#pragma unroll
        for (int n = 0; n < kPacks; ++n) {
          store_quad<kWidth>(p.final_state + (row_head * p.key_dim + key) * p.value_dim, column + 32 * n, p.value_dim,
                             state[r][n]);
        }
      }
    }
    __syncthreads();  // the shared memory is the next item's
  }
}

template <typename T>
int64_t chunk_count(const GatedDeltaRuleParams<T>& p) {
  require_delta_rule_sizes("gated_delta_rule_chunked", p);
  require_range("gated_delta_rule_chunked", "length", p.length, 1, kAnySize);
  return ceil_div(p.length, kTile);
}

template <typename T, int kWidth, class Tile>
void start_pass(const GatedDeltaRuleParams<T>& p, int64_t chunks, cudaStream_t stream) {
  launch_shared("gated_delta_rule_chunked", delta_rule_pass_kernel<T, kWidth, Tile>,
                p.batch * p.value_heads * ceil_div(p.value_dim, Tile::kColumns), Tile::kThreads,
                Tile::kSharedFloats * static_cast<int>(sizeof(float)), stream, p,
                static_cast<const DeltaRuleWithin*>(p.workspace), chunks);
}

template <typename T, int kWidth>
void start(const GatedDeltaRuleParams<T>& p, int64_t chunks, cudaStream_t stream) {
  const int64_t row_heads = p.batch * p.value_heads;
  launch("gated_delta_rule_chunked", delta_rule_within_kernel<T, kWidth>, row_heads * chunks, kDeltaRuleWithinThreads,
         stream, p, static_cast<DeltaRuleWithin*>(p.workspace), chunks);
  // Both tiles add in the same order: what a row gives does not depend on how many rows there are.
  const bool is_wide =
      p.value_dim > Narrow::kColumns && row_heads * ceil_div(p.value_dim, Wide::kColumns) >= kEnoughWide;
  is_wide ? start_pass<T, kWidth, Wide>(p, chunks, stream) : start_pass<T, kWidth, Narrow>(p, chunks, stream);
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

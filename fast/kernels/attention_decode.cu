#include "fast/kernels/attention.hpp"
#include "fast/kernels/attention_columns.cuh"
#include "fast/kernels/attention_combine.cuh"
#include "fast/kernels/attention_require.hpp"
#include "fast/kernels/attention_split.cuh"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/storage.cuh"
#include "fast/kernels/tile_ring.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = kSplitWarps * kWarp;

// kSums sums, each over kLanes neighbouring lanes: lane l of them is left with sum l / (kLanes / kSums). In a fixed
// order, and with one exchange for about each sum.
template <int kLanes, int kSums>
__device__ inline float scatter_sums(float (&sums)[kSums]) {
  static_assert(kSums <= kLanes && (kSums & (kSums - 1)) == 0);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int offset = kLanes / 2;
#pragma unroll
  for (int count = kSums; count > 1; count /= 2, offset /= 2) {
    const bool is_upper = (lane & offset) != 0;
#pragma unroll
    for (int i = 0; i < kSums / 2; ++i) {
      if (i >= count / 2) break;
      const float kept = is_upper ? sums[i + count / 2] : sums[i];
      const float given = is_upper ? sums[i] : sums[i + count / 2];
      sums[i] = kept + __shfl_xor_sync(kFullWarp, given, offset);
    }
  }
#pragma unroll
  for (; offset > 0; offset /= 2) sums[0] += __shfl_xor_sync(kFullWarp, sums[0], offset);
  return sums[0];
}

// Of a multiprocessor: what the registers of a thread leave.
template <typename Tile, int kRows>
inline constexpr int kBlocks = kRows* Tile::kElements <= 32 ? 3 : 2;

// kWidth: elements of an access; kRows: rows that a block keeps, at least as many as there are.
template <typename T, int kWidth, typename Tile, int kRows>
__global__ void __launch_bounds__(kThreads, kBlocks<Tile, kRows>)
    attention_split_kernel(AttentionParams<T> p, AttentionSplit split, AttentionParts parts) {
  constexpr int kLanes = Tile::kLanes, kKeys = Tile::kKeys, kSlots = Tile::kSlots;
  constexpr int kPacks = Tile::kElements / kWidth;
  constexpr int kTeams = kWarp / kLanes;     // keys that a warp reads side by side
  constexpr int kTeamKeys = kKeys / kTeams;  // of a tile
  // Keys whose scores are summed at a time.
  constexpr int kBatch = kTeamKeys * kRows <= kLanes ? kTeamKeys : kLanes / kRows;
  constexpr int kBatches = kTeamKeys / kBatch;
  constexpr int kSums = kBatch * kRows;
  constexpr int kSame = kLanes / kSums;  // lanes that hold the same score
  // A warp leaves its results where its tiles were, which every one of its lanes has read by then.
  static_assert(kSlots * kKeys * sizeof(T) >= kRows * sizeof(float));
  alignas(16) __shared__ float weights[kSplitWarps][kKeys][kRows];
  alignas(16) __shared__ float fades[kSplitWarps][kRows];
  __shared__ float most_of[kSplitWarps][kRows], sum_of[kSplitWarps][kRows];

  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  const int team_lane = lane % kLanes, team = lane / kLanes;
  // This lane's scores: of one row, of one key in each batch.
  const int own_row = team_lane / kSame % kRows, own_key = team_lane / kSame / kRows;
  const int width = static_cast<int>(p.width), value_width = static_cast<int>(p.value_width);
  const int64_t group = p.heads / p.kv_heads;
  const int64_t past = past_of(p);
  const int64_t columns = past + p.length;
  const int64_t columns_of_one = split.columns_of_one(columns);
  const int slot_elements = kKeys * max(width, value_width);
  TileRing<T, kWidth, kLanes, kPacks, kKeys, kSlots> ring{
      reinterpret_cast<T*>(dynamic_shared()) + warp * kSlots * slot_elements, slot_elements};
  T* query = reinterpret_cast<T*>(dynamic_shared()) + kSplitWarps * kSlots * slot_elements;  // [kRows][width]
  float* left = dynamic_shared();  // [kSplitWarps][left_pitch]
  const int left_pitch = kSlots * slot_elements * static_cast<int>(sizeof(T)) / static_cast<int>(sizeof(float));

  // Chunks of rows that read the same keys are neighbours, so that all but one find them in the cache.
  for (int64_t item = blockIdx.x; item < p.batch * p.kv_heads * split.parts * split.row_chunks; item += gridDim.x) {
    const int64_t pair_part = item / split.row_chunks;
    const int64_t first_row = (item - pair_part * split.row_chunks) * split.chunk_rows;
    const int64_t pair = pair_part / split.parts;
    const int64_t part = pair_part - pair * split.parts;
    const int row_count = static_cast<int>(min(split.rows - first_row, int64_t{kRows}));
    const int64_t batch = pair / p.kv_heads;
    const int64_t kv_head = pair - batch * p.kv_heads;
    const int64_t first = part * columns_of_one;
    if (first >= columns) continue;  // alike in all threads
    const int count = static_cast<int>(min(columns_of_one, columns - first));
    const T* keys = p.k + (pair * p.capacity + first) * width;
    const T* values = p.v + (pair * p.capacity + first) * value_width;
    const uint8_t* mask = p.mask == nullptr ? nullptr : p.mask + batch * p.mask_stride + first;

    // Tile i of this warp begins at key (i * kSplitWarps + warp) * kKeys; its keys and its values take turns.
    constexpr int kStride = kSplitWarps * kKeys;
    int asked_key = warp * kKeys;
    bool is_value_next = false;
    const auto ask = [&] {
      const int there = max(0, min(count - asked_key, kKeys));
      const int64_t at = asked_key;
      ring.fill(is_value_next ? values + at * value_width : keys + at * width, there,
                is_value_next ? value_width : width);
      if (is_value_next) asked_key += kStride;
      is_value_next = !is_value_next;
    };
    // The queries come with this thread's first tile.
#pragma unroll
    for (int r = warp; r < kRows; r += kSplitWarps) {
      const int64_t l = (first_row + r) / group;
      const T* q =
          p.q + (batch * p.length + l) * p.q_stride + (kv_head * group + first_row + r - l * group) * p.q_head_stride;
#pragma unroll
      for (int first_lane = 0; first_lane < kLanes * Tile::kElements; first_lane += kWarp * kWidth) {
        const int d = first_lane + lane * kWidth;
        if (d < width) copy_async<kWidth>(query + r * width + d, r < row_count ? q + d : p.q, r < row_count);
      }
    }
#pragma unroll
    for (int i = 0; i < kSlots; ++i) ask();
    ring.drain();
    __syncthreads();
    // The last column that the row sees, its own.
    const int64_t limit = past + (first_row + own_row) / group - first;
    float most = kUnseen, sum = 0;
    float result[kRows][Tile::kElements] = {};
    const auto mask_at = [&](int key) {
      return mask == nullptr ? 1 : lane < kKeys && key + lane < count ? static_cast<int>(mask[key + lane]) : 0;
    };
    int mask_ahead = mask_at(warp * kKeys);

    for (int key = warp * kKeys; key < count; key += kStride) {
      const int there = min(count - key, kKeys);
      const unsigned is_real = __ballot_sync(kFullWarp, mask_ahead != 0);
      mask_ahead = mask_at(key + kStride);

      float score[kBatches];
      const T* tile = ring.drain();
#pragma unroll
      for (int b = 0; b < kBatches; ++b) {
        float dot[kSums] = {};
#pragma unroll
        for (int pack = 0; pack < kPacks; ++pack) {
          const int d = (pack * kLanes + team_lane) * kWidth;
          if (d < width) {
            float some[kBatch][kWidth];
#pragma unroll
            for (int m = 0; m < kBatch; ++m) {
              load_pack<kWidth>(tile + ((b * kBatch + m) * kTeams + team) * width + d, some[m]);
            }
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
              float q[kWidth];
              load_pack<kWidth>(query + r * width + d, q);
#pragma unroll
              for (int m = 0; m < kBatch; ++m) {
#pragma unroll
                for (int i = 0; i < kWidth; ++i) dot[m * kRows + r] = fmaf(q[i], some[m][i], dot[m * kRows + r]);
              }
            }
          }
        }
        const int at = (b * kBatch + own_key) * kTeams + team;
        const bool is_seen = (is_real >> at & 1) != 0 && key + at <= limit;
        const float scaled = scatter_sums<kLanes>(dot) * p.scale;
        score[b] = at >= there ? kAbsent : is_seen ? scaled : kUnseen;
      }
      ring.release();
      ask();

      float now_most = score[0];
#pragma unroll
      for (int b = 1; b < kBatches; ++b) now_most = score[b] > now_most ? score[b] : now_most;
#pragma unroll
      for (int offset = kSame * kRows; offset < kWarp; offset *= 2) {
        const float other = __shfl_xor_sync(kFullWarp, now_most, offset);
        now_most = other > now_most ? other : now_most;
      }
      now_most = most > now_most ? most : now_most;
      float total = 0;
#pragma unroll
      for (int b = 0; b < kBatches; ++b) {
        const float weight = precise_exp(score[b] - now_most);
        if (lane % kSame == 0) weights[warp][(b * kBatch + own_key) * kTeams + team][own_row] = weight;
        total += weight;
      }
#pragma unroll
      for (int offset = kSame * kRows; offset < kWarp; offset *= 2) {
        total += __shfl_xor_sync(kFullWarp, total, offset);
      }
      const float fade = precise_exp(most - now_most);
      sum = fmaf(sum, fade, total);
      most = now_most;
      if (lane < kSame * kRows && lane % kSame == 0) fades[warp][own_row] = fade;
      __syncwarp();

      tile = ring.drain();
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        const int d = (pack * kLanes + team_lane) * kWidth;
        // A tile by itself, then onto the sum: the rounding of thousands of keys, one after the other, would pile up.
        float of_tile[kRows][kWidth] = {};
        if (d < value_width) {
#pragma unroll
          for (int j = 0; j < kTeamKeys; ++j) {
            const int at = j * kTeams + team;
            float some[kWidth];
            load_pack<kWidth>(tile + at * value_width + d, some);
            constexpr int kQuad = kRows < 4 ? kRows : 4;
#pragma unroll
            for (int r = 0; r < kRows; r += kQuad) {
              float weight[kQuad];
              load_pack<kQuad>(&weights[warp][at][r], weight);
#pragma unroll
              for (int q = 0; q < kQuad; ++q) {
#pragma unroll
                for (int i = 0; i < kWidth; ++i) of_tile[r + q][i] = fmaf(weight[q], some[i], of_tile[r + q][i]);
              }
            }
          }
        }
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float row_fade = fades[warp][r];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            result[r][pack * kWidth + i] = fmaf(result[r][pack * kWidth + i], row_fade, of_tile[r][i]);
          }
        }
      }
      ring.release();
      ask();
    }

    if (lane < kSame * kRows && lane % kSame == 0) {
      most_of[warp][own_row] = most;
      sum_of[warp][own_row] = sum;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int pack = 0; pack < kPacks; ++pack) {
        const int d = (pack * kLanes + team_lane) * kWidth;
        float some[kWidth];
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          some[i] = result[r][pack * kWidth + i];
          if constexpr (kTeams == 2) some[i] += __shfl_xor_sync(kFullWarp, some[i], kLanes);
        }
        if (team == 0 && d < value_width) store_pack<kWidth>(left + warp * left_pitch + r * value_width + d, some);
      }
    }
    __syncthreads();
    for (int r = warp; r < row_count; r += kSplitWarps) {
      const int64_t at = (pair * split.rows + first_row + r) * split.parts + part;
      float block_most = most_of[0][r];
#pragma unroll
      for (int w = 1; w < kSplitWarps; ++w) block_most = most_of[w][r] > block_most ? most_of[w][r] : block_most;
      float share[kSplitWarps], block_sum = 0;
#pragma unroll
      for (int w = 0; w < kSplitWarps; ++w) {
        share[w] = precise_exp(most_of[w][r] - block_most);
        block_sum = fmaf(share[w], sum_of[w][r], block_sum);
      }
      for (int d = lane * kWidth; d < value_width; d += kWarp * kWidth) {
        float total[kWidth] = {};
#pragma unroll
        for (int w = 0; w < kSplitWarps; ++w) {
          float some[kWidth];
          load_pack<kWidth>(left + w * left_pitch + r * value_width + d, some);
#pragma unroll
          for (int i = 0; i < kWidth; ++i) total[i] = fmaf(share[w], some[i], total[i]);
        }
        store_pack<kWidth>(parts.value + at * value_width + d, total);
      }
      if (lane == 0) {
        parts.most[at] = block_most;
        parts.sum[at] = block_sum;
      }
    }
    __syncthreads();  // the next item's tiles overwrite what is left
  }
}

template <typename T, int kWidth, typename Tile, int kRows>
void start_rows(const AttentionParams<T>& p, const AttentionSplit& split, const AttentionParts& parts,
                cudaStream_t stream) {
  const int64_t items = p.batch * p.kv_heads * split.row_chunks * split.parts;
  const int64_t slots = kSplitWarps * Tile::kSlots * Tile::kKeys * std::max(p.width, p.value_width);
  const int bytes = static_cast<int>((slots + kRows * p.width) * static_cast<int64_t>(sizeof(T)));
  launch_shared("attention_decode", attention_split_kernel<T, kWidth, Tile, kRows>, items, kThreads, bytes, stream, p,
                split, parts);
}

// The fewest rows that hold those there are; without packs, which only odd widths lack, always the most.
template <typename T, int kWidth, typename Tile>
void start_tile(const AttentionParams<T>& p, const AttentionSplit& split, const AttentionParts& parts,
                cudaStream_t stream) {
  if constexpr (kWidth > 1) {
    if (split.rows <= 1) return start_rows<T, kWidth, Tile, 1>(p, split, parts, stream);
    if constexpr (Tile::kRows > 4) {
      if (split.rows <= 4) return start_rows<T, kWidth, Tile, 4>(p, split, parts, stream);
    }
    if constexpr (Tile::kRows > 8) {
      if (split.rows <= 8) return start_rows<T, kWidth, Tile, 8>(p, split, parts, stream);
    }
  }
  start_rows<T, kWidth, Tile, Tile::kRows>(p, split, parts, stream);
}

template <typename T, int kWidth>
void start(const AttentionParams<T>& p, const AttentionSplit& split, const AttentionParts& parts, cudaStream_t stream) {
  with_head_tile(p.width, p.value_width,
                 [&](auto tile) { start_tile<T, kWidth, decltype(tile)>(p, split, parts, stream); });
  start_combine<T, kWidth>(p, split, parts, stream);
}

}  // namespace

template <typename T>
size_t attention_decode_workspace_bytes(const AttentionParams<T>& p) {
  require_attention_sizes("attention_decode", p);
  return lay_out_parts(p, split_attention(p)).bytes;
}

template <typename T>
void attention_decode(const AttentionParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "attention_decode";
  require_attention_sizes(kName, p);
  require_attention_operands(kName, p);
  require_pointer(kName, "workspace", p.workspace);
  const AttentionSplit split = split_attention(p);
  const AttentionParts parts = lay_out_parts(p, split);
  constexpr int kWidth = kPackWidth<T>;
  if (is_packable<kWidth, T>({p.q, p.k, p.v, p.y}, {p.width, p.value_width, p.q_stride, p.q_head_stride})) {
    start<T, kWidth>(p, split, parts, stream);
  } else {
    start<T, 1>(p, split, parts, stream);
  }
}

template size_t attention_decode_workspace_bytes<float>(const AttentionParams<float>&);
template void attention_decode<float>(const AttentionParams<float>&, cudaStream_t);

}  // namespace assay::fast

// The counting sort of (token, slot) pairs by expert, stable, in three kernels. A pair is its index t * k + slot.
//
//     order[place] = pair, all pairs of expert 0 first, ascending within an expert;  place_of[pair] = place
//     offsets[e], offsets[e + 1]   the places of expert e
//     tiles[e], tiles[e + 1]       its row tiles, ceil(places / tile_rows); tile_expert[tile] = e
//
// cost      8 bytes a pair read and written, and 4 bytes for each expert of each chunk of kOrderChunk pairs, three
//           times
// numerics  integers: the order depends on nothing but the experts
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace assay::fast {

inline constexpr int64_t kOrderChunk = 1024;  // pairs that a warp counts

struct ExpertOrder {
  const int32_t* experts = nullptr;  // [pairs]
  int32_t* counts = nullptr;         // [chunks, E]: of the chunk, then of those before it
  int32_t* offsets = nullptr;        // [E + 1]
  int32_t* tiles = nullptr;          // [E + 1]
  int32_t* tile_expert = nullptr;    // [most_tiles]
  int32_t* order = nullptr;          // [pairs]
  int32_t* place_of = nullptr;       // [pairs]
  int64_t pairs = 0;
  int64_t chunks = 0;
  int64_t count = 0;  // E
  int64_t tile_rows = 0;
  int64_t most_tiles = 0;
};

void order_by_expert(const ExpertOrder& order, cudaStream_t stream);

}  // namespace assay::fast

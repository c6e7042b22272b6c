// ChannelTile: the channels that a block works at. They are of one group, so that it needs one row of B and C a step.
#pragma once

#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/quotient.cuh"

namespace assay::fast {

struct ChannelTile {
  int64_t group, first;
  int64_t count;  // to the end of the group, which may be beyond the tile's
};

template <int kChannels, typename Params>
__host__ __device__ int64_t tiles_of_group(const Params& p) {
  return ceil_div(p.channels / p.groups, kChannels);
}

template <int kChannels, typename Params>
__device__ inline ChannelTile channel_tile(const Params& p, int64_t index) {
  const int64_t group_tiles = tiles_of_group<kChannels>(p), group_width = quotient(p.channels, p.groups);
  ChannelTile tile;
  tile.group = quotient(index, group_tiles);
  const int64_t skipped = (index - tile.group * group_tiles) * kChannels;
  tile.first = tile.group * group_width + skipped;
  tile.count = group_width - skipped;
  return tile;
}

}  // namespace assay::fast

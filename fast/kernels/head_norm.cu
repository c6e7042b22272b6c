#include "fast/kernels/head_norm.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/quotient.cuh"
#include "fast/kernels/reduce.cuh"
#include "fast/kernels/require.hpp"
#include "fast/kernels/row_tile.cuh"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 128;

// divisor: of the sum of squares. offset: what a weight is added to; without weights it is the factor itself.
struct Scaling {
  float divisor, epsilon, offset;
};

template <typename T>
struct Slices {
  const T* x;
  int64_t x_stride;
  const T* weight;
  T* y;
  int64_t y_stride;
  int64_t rows, heads, width;
};

// kTeam lanes a (row, head). The last tile of a slice, which is all of a common head, is read once.
template <typename T, int kWidth, int kPacks, int kTeam>
__global__ void __launch_bounds__(kThreads) head_norm_kernel(Slices<T> s, Scaling scaling) {
  const int lane = static_cast<int>(threadIdx.x) % kTeam;
  constexpr int kTeams = kThreads / kTeam;
  constexpr int kTile = kPacks * kTeam;
  const int64_t packs = s.width / kWidth, items = s.rows * s.heads;
  // Whole warps stay in the loop; a team past the end has no packs.
  for (int64_t first_item = static_cast<int64_t>(blockIdx.x) * kTeams; first_item < items;
       first_item += static_cast<int64_t>(gridDim.x) * kTeams) {
    const int64_t item = first_item + threadIdx.x / kTeam;
    const int64_t end = item < items ? packs : 0;
    const int64_t row = quotient(item, s.heads);
    const int64_t start = (item - row * s.heads) * s.width;
    const T* x = s.x + row * s.x_stride + start;
    T* y = s.y + row * s.y_stride + start;
    float tile[kPacks][kWidth];
    float squares = 0;
    int64_t first = 0;
    for (;; first += kTile) {
      load_tile(x + first * kWidth, end - first, lane, kTeam, tile);
      squares += sum_squares(tile);
      if (first + kTile >= packs) break;
    }
    const float scale = 1.0f / sqrtf(sum_lanes<kTeam>(squares) / scaling.divisor + scaling.epsilon);
    for (;;) {
      if (s.weight == nullptr) {
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) tile[k][i] = scaling.offset * (tile[k][i] * scale);
        }
      } else {
        float weight[kPacks][kWidth];
        load_tile(s.weight + first * kWidth, end - first, lane, kTeam, weight);
#pragma unroll
        for (int k = 0; k < kPacks; ++k) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) tile[k][i] = (weight[k][i] + scaling.offset) * (tile[k][i] * scale);
        }
      }
      store_tile(y + first * kWidth, end - first, lane, kTeam, tile);
      if (first == 0) break;
      first -= kTile;
      load_tile(x + first * kWidth, end - first, lane, kTeam, tile);
    }
  }
}

template <typename T, int kWidth, int kPacks, int kTeam>
void start_team(const char* name, const Slices<T>& s, const Scaling& scaling, cudaStream_t stream) {
  launch(name, head_norm_kernel<T, kWidth, kPacks, kTeam>, ceil_div(s.rows * s.heads, kThreads / kTeam), kThreads,
         stream, s, scaling);
}

template <typename T, typename Params>
void start(const char* name, const Params& p, const T* weight, const Scaling& scaling, cudaStream_t stream) {
  require_pointer(name, "x", p.x);
  require_pointer(name, "y", p.y);
  require_range(name, "rows", p.rows, 1, kAnySize);
  require_range(name, "heads", p.heads, 1, kAnySize);
  require_range(name, "width", p.width, 1, kAnySize);
  require_stride(name, "x_stride", p.x_stride, p.heads * p.width);
  require_stride(name, "y_stride", p.y_stride, p.heads * p.width);
  const Slices<T> slices{p.x, p.x_stride, weight, p.y, p.y_stride, p.rows, p.heads, p.width};
  constexpr int kWidth = kPackWidth<T>;
  // Lanes side by side read whole 128-byte lines; two packs a lane keep enough of them in flight.
  const int64_t packs = p.width / kWidth;
  auto* const start_with = !is_packable<kWidth, T>({p.x, weight, p.y}, {p.x_stride, p.y_stride, p.width})
                               ? start_team<T, 1, 4, kWarp>
                           : packs <= 8  ? start_team<T, kWidth, 1, 8>
                           : packs <= 16 ? start_team<T, kWidth, 2, 8>
                           : packs <= 32 ? start_team<T, kWidth, 2, 16>
                           : packs <= 64 ? start_team<T, kWidth, 2, kWarp>
                                         : start_team<T, kWidth, 4, kWarp>;
  start_with(name, slices, scaling, stream);
}

}  // namespace

template <typename T>
void head_rms_norm(const HeadRmsNormParams<T>& p, cudaStream_t stream) {
  const float offset = p.weight == nullptr || p.is_zero_centred ? 1.0f : 0.0f;
  start("head_rms_norm", p, p.weight, {static_cast<float>(p.width), p.epsilon, offset}, stream);
}

template <typename T>
void l2norm(const L2NormParams<T>& p, cudaStream_t stream) {
  start<T>("l2norm", p, nullptr, {1.0f, p.epsilon, p.scale}, stream);
}

template void head_rms_norm<float>(const HeadRmsNormParams<float>&, cudaStream_t);
template void l2norm<float>(const L2NormParams<float>&, cudaStream_t);

}  // namespace assay::fast

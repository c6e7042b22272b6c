#include "fast/kernels/embedding.hpp"
#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"
#include "fast/kernels/require.hpp"
#include "fast/kernels/storage.cuh"

namespace assay::fast {
namespace {

constexpr int kThreads = 256;

template <typename T, int kWidth>
__global__ void embedding_kernel(EmbeddingParams<T> p) {
  const int64_t packs = p.width / kWidth;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < p.tokens * packs; i += step) {
    const int64_t token = i / packs;
    const int64_t at = (i - token * packs) * kWidth;
    const int64_t id = p.ids[token];
    float row[kWidth];
    if (id >= 0 && id < p.vocabulary) {
      load_pack<kWidth>(p.weight + id * p.width + at, row);
    } else {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) row[k] = bits_to_float(0x7fc00000u);  // NaN
    }
    store_pack<kWidth>(p.y + token * p.width + at, row);
  }
}

}  // namespace

template <typename T>
void embedding(const EmbeddingParams<T>& p, cudaStream_t stream) {
  constexpr const char* kName = "embedding";
  require_pointer(kName, "ids", p.ids);
  require_pointer(kName, "weight", p.weight);
  require_pointer(kName, "y", p.y);
  require_range(kName, "tokens", p.tokens, 1, kAnySize);
  require_range(kName, "vocabulary", p.vocabulary, 1, kAnySize);
  require_range(kName, "width", p.width, 1, kAnySize);
  constexpr int kWidth = kPackWidth<T>;
  if (is_packable<kWidth, T>({p.weight, p.y}, {p.width})) {
    launch(kName, embedding_kernel<T, kWidth>, ceil_div(p.tokens * (p.width / kWidth), kThreads), kThreads, stream, p);
  } else {
    launch(kName, embedding_kernel<T, 1>, ceil_div(p.tokens * p.width, kThreads), kThreads, stream, p);
  }
}

template void embedding<float>(const EmbeddingParams<float>&, cudaStream_t);

}  // namespace assay::fast

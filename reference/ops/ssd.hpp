// ssd: the Mamba-2 recurrence (state-space duality), one decay a head and a state of P x N numbers.
//
//     S[t,h] = exp(dt[t,h] * A[h]) * S[t-1,h] + dt[t,h] * x[t,h] B[t,g(h)]^T
//     y[t,h] = S[t,h] C[t,g(h)] + D[h] * x[t,h],          g(h) = floor(h / (Nh / G))
//
// in   x              [B, L, Nh, P]
//      dt             [B, L, Nh], already through softplus and limits (reference/ops/dt.hpp)
//      A              [Nh], below zero
//      B, C           [B, L, G, N]
//      D              [Nh]
//      initial_state  [B, Nh, P, N]; undefined means zeros
// out  y              [B, L, Nh, P]
//      final_state    [B, Nh, P, N]
//
// requires  Nh % G == 0; chunk_size >= 1
// source    Dao & Gu 2024; models.md B4.1 steps 7 and 8 (recurrent), B4.2 (chunked)
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct Ssd {
  at::Tensor y;
  at::Tensor final_state;
};

Ssd ssd_recurrent(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                  const at::Tensor& C, const at::Tensor& D, const at::Tensor& initial_state = {});

// The same sums chunk by chunk: inside a chunk every pair j <= i at once, between chunks through the state. The last
// chunk is as long as what is left, which equals a full one padded with dt = 0 and x = 0 after softplus.
Ssd ssd_chunked(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                const at::Tensor& C, const at::Tensor& D, int64_t chunk_size, const at::Tensor& initial_state = {});

}  // namespace assay::reference

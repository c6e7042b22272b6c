// selective_scan: the Mamba-1 recurrence, one state of N numbers a channel.
//
//     h[t,i,n] = exp(dt[t,i] * A[i,n]) * h[t-1,i,n] + dt[t,i] * B[t,n] * x[t,i]
//     y[t,i]   = sum_n h[t,i,n] * C[t,n] + D[i] * x[t,i]
//
// in   x, dt          [B, L, I], dt already through softplus (reference/ops/dt.hpp)
//      A              [I, N], below zero
//      B, C           [B, L, N], shared by all channels
//      D              [I]
//      initial_state  [B, I, N]; undefined means zeros
// out  y              [B, L, I]
//      final_state    [B, I, N]
//
// source  Gu & Dao 2023, algorithm 2; models.md B3.1 step 9: B discretised as dt * B
#pragma once

#include <ATen/ATen.h>

namespace assay::reference {

struct SelectiveScan {
  at::Tensor y;
  at::Tensor final_state;
};

SelectiveScan selective_scan(const at::Tensor& x, const at::Tensor& dt, const at::Tensor& A, const at::Tensor& B,
                             const at::Tensor& C, const at::Tensor& D, const at::Tensor& initial_state = {});

}  // namespace assay::reference

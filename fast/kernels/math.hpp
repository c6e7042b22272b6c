// Scalar functions of the kernels, float32, the same on host and device so that they can be tested without a GPU.
//
//   precise_exp  e^x within 1 ulp and without bias, results below 9e-39 flushed to 0, infinite from 88.4 on. The decays
//                of a recurrence are raised to the power of its memory, 1 / (1 - decay) steps: a hardware ex2 whose
//                error leans to one side near 0 would show there a thousandfold. Six fused multiply-adds in place of
//                ex2.
//   softplus     x where x > 20, else log1p(exp(x))                            models.md 1.3
//   sigmoid      1 / (1 + exp(-x))
//   silu         x / (1 + exp(-x)), -0 for large negative x
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace assay::fast {

__host__ __device__ inline float bits_to_float(uint32_t bits) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

__host__ __device__ inline uint32_t float_to_bits(float x) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(x);
#else
  return std::bit_cast<uint32_t>(x);
#endif
}

__host__ __device__ inline float precise_exp(float x) {
  // Comparisons, not fmaxf and fminf: those would turn NaN into a number.
  x = x < -88.0f ? -88.0f : x;
  x = x > 89.0f ? 89.0f : x;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693145752f;  // 15 bits: n * kLn2High is exact
  constexpr float kLn2Low = 1.42860677e-6f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const float shifted = fmaf(x, kLog2E, kRounder);
  const float n = shifted - kRounder;
  float r = fmaf(n, -kLn2High, x);
  r = fmaf(n, -kLn2Low, r);
  // e^r = 1 + r (1 + r q(r)) on |r| <= ln 2 / 2; q minimax, 3e-9 relative.
  float q = 0.00138145f;
  q = fmaf(q, r, 0.00836875f);
  q = fmaf(q, r, 0.04166839f);
  q = fmaf(q, r, 0.16666521f);
  q = fmaf(q, r, 0.49999994f);
  q = fmaf(q, r, 1.0f);
  q = fmaf(q, r, 1.0f);
  // 2^n built in the exponent; n = -127 gives 0 and n = 128 infinity.
  return q * bits_to_float((float_to_bits(shifted) << 23) + 0x3f800000u);
}

__host__ __device__ inline float softplus(float x) { return x > 20.0f ? x : log1pf(expf(x)); }

__host__ __device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__host__ __device__ inline float silu(float x) { return x / (1.0f + expf(-x)); }

// NaN passes: the comparisons are false for it.
__host__ __device__ inline float clamp(float x, float low, float high) { return x < low ? low : (x > high ? high : x); }

}  // namespace assay::fast

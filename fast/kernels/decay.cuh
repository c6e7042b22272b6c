// Decays of a recurrence, exp(d a), from p = d a log2(e).
//
// numerics  A decay's error is repeated over the memory of its state, 1 / (1 - decay) steps, and there a mean that is
//           off by a tenth of an ulp, as that of the hardware's ex2 is, outgrows all other rounding. Where the memory
//           is long, p in [-kNear, 0], the decay is 1 + p q(p) with q minimax: without bias, and the rate of decay off
//           by 2e-8 of itself at most. Elsewhere, above 0 too, it is ex2, within 1.4e-7. Results below 2^-126 are 0.
#pragma once

#include <bit>
#include <cstdint>

#include "fast/kernels/launch.cuh"
#include "fast/kernels/math.hpp"

namespace assay::fast {

// a log2(e), rounded once.
__device__ inline float in_powers_of_two(float a) {
  constexpr float kLog2E = 1.44269502f;
  constexpr float kLog2ELow = 1.92596303e-8f;
  return fmaf(a, kLog2E, a * kLog2ELow);
}

inline constexpr float kNear = 0.15f;
// As integers the negative floats come in order of magnitude, and before all others and NaN.
inline constexpr auto kNearBits = static_cast<int32_t>(std::bit_cast<uint32_t>(-kNear));

// decay[i] = 2^p[i], all of them step by step side by side. The selection is in assembly, since the compiler would move
// the polynomial behind the comparison, where nothing overlaps.
template <int kCount>
__device__ inline void decays_of(const float (&p)[kCount], float (&decay)[kCount]) {
  float q[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(decay[i]) : "f"(p[i]));
#pragma unroll
  for (int i = 0; i < kCount; ++i) q[i] = fmaf(0.00922748819f, p[i], 0.0554677546f);
#pragma unroll
  for (int i = 0; i < kCount; ++i) q[i] = fmaf(q[i], p[i], 0.240225419f);
#pragma unroll
  for (int i = 0; i < kCount; ++i) q[i] = fmaf(q[i], p[i], 0.693147182f);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    asm("{\n"
        ".reg .pred is_near;\n"
        "setp.le.s32 is_near, %1, %3;\n"
        "@is_near fma.rn.f32 %0, %2, %4, 0f3F800000;\n"
        "}"
        : "+f"(decay[i])
        : "r"(float_to_bits(p[i])), "f"(p[i]), "n"(kNearBits), "f"(q[i]));
  }
}

}  // namespace assay::fast

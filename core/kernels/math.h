// Scalar functions for vectorized loops: no branches, no calls, no tables, so that a loop over them compiles to vector code on
// every instruction set and gives the same bits on all of them. For double they are the standard library's, which serves the
// gradient checks.
//
// The polynomials are minimax fits (Remez) made for these intervals. NaN in, NaN out; infinities as the mathematics has it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/kernels/vectorize.h"

namespace rowan {

// e^x within 1.5 ulp. Overflows to infinity above 88.72; denormal results come out right unless the processor flushes them.
ROWAN_INLINE float fast_exp(float x) {
  // e^x = 2^n e^r, |r| <= ln(2)/2. Adding and taking off 1.5 * 2^23 rounds to the nearest integer, which then stands in the low
  // bits.
  constexpr float kRound = 12582912.0f, kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693145752f, kLn2Low = 1.42860677e-6f;  // High has 15 bits: n * High is exact
  x = x < -104.0f ? -104.0f : x;                                      // e^-104 rounds to 0 and e^89 to infinity; a NaN passes
  x = x > 89.0f ? 89.0f : x;
  const float rounded = x * kLog2e + kRound;
  const float n = rounded - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float q = 1.3814467e-3f;
  q = q * r + 8.3687804e-3f;
  q = q * r + 4.1668394e-2f;
  q = q * r + 1.6666520e-1f;
  q = q * r + 4.9999993e-1f;
  const float power = 1.0f + (r + r * r * q);
  // 2^n in two factors: n runs from -150 to 128, beyond the exponents of one.
  const int32_t exponent = std::bit_cast<int32_t>(rounded) - std::bit_cast<int32_t>(kRound);
  const int32_t half = exponent >> 1;
  const auto two_to = [](int32_t e) { return std::bit_cast<float>(static_cast<uint32_t>(e + 127) << 23); };
  return power * two_to(half) * two_to(exponent - half);
}
ROWAN_INLINE double fast_exp(double x) {
  return std::exp(x);
}

// 1 / (1 + e^-x), and its slope sigmoid(x) (1 - sigmoid(x)) without cancellation.
template <class T>
struct Sigmoid {
  T value, slope;
};
template <class T>
ROWAN_INLINE T fast_sigmoid(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}
template <class T>
ROWAN_INLINE Sigmoid<T> fast_sigmoid_with_slope(T x) {
  const T e = fast_exp(-x);
  const T value = T(1) / (T(1) + e);
  const T finite = e < T(1e37) ? e : T(1e37);  // infinity times 0 would be NaN where the slope has long been 0
  return {value, finite * value * value};
}

// The normal distribution: P(X < x) and its density, X ~ N(0,1). gelu(x) = x P(X < x).
template <class T>
struct Normal {
  T below, density;
};

// below within 2.5e-7 of the true value, and within 5e-7 (1 + x^2) of it relatively, down the lower tail to x = -12.5.
ROWAN_INLINE Normal<float> fast_normal(float x) {
  // P(X < -a) = e^(-a^2/2) g(a), with g a polynomial in t = 1 / (1 + 0.35 a): it falls as 1/a, and t does.
  const float a = std::fabs(x);
  const float bell = fast_exp(-0.5f * x * x);
  const float t = 1.0f / (1.0f + 0.35f * a);
  float g = -2.9157872e-2f;
  g = g * t + 1.4403085e-1f;
  g = g * t - 2.5583887e-1f;
  g = g * t + 1.5931955e-1f;
  g = g * t - 2.3212251e-2f;
  g = g * t + 1.0555246e-1f;
  g = g * t + 1.1982130e-1f;
  g = g * t + 1.3986351e-1f;
  g = g * t + 1.3962131e-1f;
  const float tail = bell * (g * t);
  return {x > 0.0f ? 1.0f - tail : tail, 0.398942280f * bell};
}
ROWAN_INLINE Normal<double> fast_normal(double x) {
  return {0.5 * std::erfc(-x * (0.5 * std::numbers::sqrt2)),
          0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2 * std::exp(-0.5 * x * x)};
}

}  // namespace rowan

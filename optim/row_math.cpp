#include "optim/row_math.h"

namespace rowan {

ROWAN_VECTORIZED void scale_row(Real* x, int64_t n, Real factor) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

ROWAN_VECTORIZED void clamp_row(Real* x, int64_t n, Real bound) {
  for (int64_t i = 0; i < n; ++i) {
    const Real low = x[i] < -bound ? -bound : x[i];
    x[i] = low > bound ? bound : low;
  }
}

ROWAN_VECTORIZED void add_row(const Real* __restrict x, int64_t n, Real* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] += x[i];
}

ROWAN_VECTORIZED void scaled_copy(const Real* __restrict x, int64_t n, Real factor, Real* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = factor * x[i];
}

ROWAN_VECTORIZED void add_scaled(const Real* __restrict x, int64_t n, Real factor, Real* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] += factor * x[i];
}

ROWAN_VECTORIZED double sum_squares(const Real* x, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int64_t l = 0; l < 8; ++l) {
      const double v = x[i + l];
      lane[l] += v * v;
    }
  for (int64_t l = 0; i + l < n; ++l) {
    const double v = x[i + l];
    lane[l] += v * v;
  }
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

}  // namespace rowan

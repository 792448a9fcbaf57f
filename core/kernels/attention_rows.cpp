#include "core/kernels/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernels/attention_product.h"
#include "core/kernels/math.h"
#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

// The rest of the last lane scores minus infinity, which is a probability of 0; n becomes a multiple of kLane.
ROWAN_INLINE int64_t pad_scores(Real* s, int64_t n) {
  const int64_t padded = (n + kLane - 1) / kLane * kLane;
  for (int64_t j = n; j < padded; ++j) s[j] = kMinusInfinity;
  return padded;
}

// One running value per element of a lane, joined at the end in a fixed order: the same bits for every vector width.
ROWAN_INLINE Real largest_of(const Real* s, int64_t n) {
  Real lane[kLane];
  for (int64_t l = 0; l < kLane; ++l) lane[l] = s[l];
  for (int64_t j = kLane; j < n; j += kLane)
    for (int64_t l = 0; l < kLane; ++l) lane[l] = s[j + l] > lane[l] ? s[j + l] : lane[l];
  for (int64_t half = kLane / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
  return lane[0];
}

ROWAN_INLINE Real sum_of_lane(Real* lane) {
  for (int64_t half = kLane / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

}  // namespace

ROWAN_VECTORIZED void softmax_tile(const ScoreTile& scores, Real* row_max, Real* row_sum, Real* rescale) {
  for (int64_t r = 0; r < scores.rows; ++r) {
    Real* s = scores.data + r * scores.ld;
    const int64_t visible = scores.visible(r);
    if (visible == 0) {
      rescale[r] = 1;
    } else {
      const int64_t n = pad_scores(s, visible);
      const Real here = largest_of(s, n), before = row_max[r];
      const Real m = here > before ? here : before;
      Real lane[kLane] = {};
      for (int64_t j = 0; j < n; j += kLane)
        for (int64_t l = 0; l < kLane; ++l) {
          s[j + l] = fast_exp(s[j + l] - m);
          lane[l] += s[j + l];
        }
      rescale[r] = fast_exp(before - m);
      row_max[r] = m;
      row_sum[r] = row_sum[r] * rescale[r] + sum_of_lane(lane);
    }
    for (int64_t j = visible; j < scores.keys; ++j) s[j] = 0;
  }
}

ROWAN_VECTORIZED void probabilities_tile(const ScoreTile& scores, const Real* log_sum) {
  for (int64_t r = 0; r < scores.rows; ++r) {
    Real* s = scores.data + r * scores.ld;
    const int64_t visible = scores.visible(r), n = pad_scores(s, visible);
    const Real shift = log_sum[r];
    for (int64_t j = 0; j < n; ++j) s[j] = fast_exp(s[j] - shift);
    for (int64_t j = visible; j < scores.keys; ++j) s[j] = 0;
  }
}

ROWAN_VECTORIZED void softmax_backward_tile(const ScoreTile& probabilities, Real* d_probabilities, const Real* delta) {
  for (int64_t r = 0; r < probabilities.rows; ++r) {
    const Real* p = probabilities.data + r * probabilities.ld;
    Real* d = d_probabilities + r * probabilities.ld;
    const int64_t visible = probabilities.visible(r);
    const Real mean = delta[r];
    ROWAN_INDEPENDENT
    for (int64_t j = 0; j < visible; ++j) d[j] = p[j] * (d[j] - mean);
    for (int64_t j = visible; j < probabilities.keys; ++j) d[j] = 0;
  }
}

ROWAN_VECTORIZED void scale_rows(Real* x, int64_t rows, int64_t n, const Real* factor) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real f = factor[r];
    Real* row = x + r * n;
    for (int64_t j = 0; j < n; ++j) row[j] *= f;
  }
}

ROWAN_VECTORIZED void dot_rows(const Real* a, int64_t lda, const Real* b, int64_t ldb, int64_t rows, int64_t n, Real* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real* x = a + r * lda;
    const Real* y = b + r * ldb;
    Real lane[kLane] = {};
    int64_t j = 0;
    for (; j + kLane <= n; j += kLane)
      for (int64_t l = 0; l < kLane; ++l) lane[l] += x[j + l] * y[j + l];
    for (int64_t l = 0; j + l < n; ++l) lane[l] += x[j + l] * y[j + l];
    out[r] = sum_of_lane(lane);
  }
}

}  // namespace rowan

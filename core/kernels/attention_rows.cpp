#include "core/kernels/attention_rows.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/kernels/attention_product.h"
#include "core/kernels/math.h"
#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

// The rest of the last lane scores minus infinity, which is a probability of 0; n becomes a multiple of kLanes.
ROWAN_INLINE int64_t pad_scores(Real* s, int64_t n) {
  const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  for (int64_t j = n; j < padded; ++j) s[j] = kMinusInfinity;
  return padded;
}

// A number's bits as an integer that is in the same order. Compilers vectorize a maximum of integers, where that of floating-point
// numbers would need them to ignore NaN. A positive NaN comes out above infinity; a negative one loses and shows in the sum.
using Ordered = std::conditional_t<kRealIsDouble, int64_t, int32_t>;
ROWAN_INLINE Ordered ordered(Ordered bits) {
  return bits ^ ((bits >> (8 * sizeof(Real) - 1)) & std::numeric_limits<Ordered>::max());
}

ROWAN_INLINE Real largest_of(const Real* s, int64_t n) {  // minus infinity for n = 0
  Ordered largest = ordered(std::bit_cast<Ordered>(kMinusInfinity));
  for (int64_t j = 0; j < n; ++j) {
    const Ordered here = ordered(std::bit_cast<Ordered>(s[j]));
    largest = here > largest ? here : largest;
  }
  return std::bit_cast<Real>(ordered(largest));
}

// Sums have one running value per element of a lane, joined here in a fixed order: the same bits for every vector width.
ROWAN_INLINE Real sum_of_lane(Real* lane) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

using Four = Real __attribute__((vector_size(4 * sizeof(Real))));

// 4 rows of 4: shuffles in registers. Compilers do not find them in a plain loop.
ROWAN_INLINE void transpose_block(const Real* in, int64_t in_ld, Real* out, int64_t out_ld) {
  Four a, b, c, d;
  std::memcpy(&a, in, sizeof a);
  std::memcpy(&b, in + in_ld, sizeof b);
  std::memcpy(&c, in + 2 * in_ld, sizeof c);
  std::memcpy(&d, in + 3 * in_ld, sizeof d);
  const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Four columns[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5), __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                           __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                           __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
  for (int64_t j = 0; j < 4; ++j) std::memcpy(out + j * out_ld, &columns[j], sizeof(Four));
}

}  // namespace

// Three passes, because what there is to do once a row is then done for many rows at a time.
ROWAN_VECTORIZED void softmax_tile(const ScoreTile& scores, Real* row_max, Real* row_sum, Real* rescale) {
  for (int64_t r = 0; r < scores.rows; ++r) {
    Real* s = scores.data + r * scores.ld;
    rescale[r] = largest_of(s, pad_scores(s, scores.visible(r)));
  }
  ROWAN_INDEPENDENT
  for (int64_t r = 0; r < scores.rows; ++r) {
    const Real before = row_max[r], m = rescale[r] > before ? rescale[r] : before;
    row_max[r] = m;
    rescale[r] = fast_exp(before - m);
  }
  for (int64_t r = 0; r < scores.rows; ++r) {
    Real* s = scores.data + r * scores.ld;
    const int64_t visible = scores.visible(r);
    const Real m = row_max[r];
    Real lane[kLanes] = {};
    for (int64_t j = 0; j < visible; j += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) {
        s[j + l] = fast_exp(s[j + l] - m);
        lane[l] += s[j + l];
      }
    row_sum[r] = row_sum[r] * rescale[r] + sum_of_lane(lane);
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

ROWAN_VECTORIZED void multiply_visible(const ScoreTile& tile, const Real* factors, Real* out) {
  for (int64_t r = 0; r < tile.rows; ++r) {
    const int64_t visible = tile.visible(r), row = r * tile.ld;
    ROWAN_INDEPENDENT
    for (int64_t j = row; j < row + visible; ++j) out[j] = tile.data[j] * factors[j];
    for (int64_t j = row + visible; j < row + tile.keys; ++j) out[j] = 0;
  }
}

ROWAN_VECTORIZED void copy_rows(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, Real* out, int64_t out_ld) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real* from = in + r * in_ld;
    Real* to = out + r * out_ld;
    ROWAN_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) to[j] = factor * from[j];
  }
}

ROWAN_VECTORIZED void add_rows(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real factor, Real* out, int64_t out_ld) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real* from = in + r * in_ld;
    Real* to = out + r * out_ld;
    ROWAN_INDEPENDENT
    for (int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
  }
}

void transpose(const Real* in, int64_t in_ld, int64_t rows, int64_t n, Real* out, int64_t out_ld) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    int64_t d = 0;
    for (; d + 4 <= n; d += 4) transpose_block(in + r * in_ld + d, in_ld, out + d * out_ld + r, out_ld);
    for (; d < n; ++d)
      for (int64_t i = r; i < r + 4; ++i) out[d * out_ld + i] = in[i * in_ld + d];
  }
  for (; r < rows; ++r)
    for (int64_t d = 0; d < n; ++d) out[d * out_ld + r] = in[r * in_ld + d];
}

ROWAN_VECTORIZED void scale_rows(Real* x, int64_t rows, int64_t n, const Real* factor) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real f = factor[r];
    Real* row = x + r * n;
    for (int64_t j = 0; j < n; ++j) row[j] *= f;
  }
}

}  // namespace rowan

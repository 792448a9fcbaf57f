#include "core/kernels/reduce.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/kernels/elementwise.h"
#include "core/kernels/lanes.h"
#include "core/kernels/math.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace rowan {
namespace {

constexpr int64_t kBlock = 1 << 15;   // of a parallel sum
constexpr int64_t kRowsAPiece = 128;  // of column sums
constexpr int64_t kExpBlock = 1024;   // stays in the first-level cache between the exponentials and their sum

template <class BlockSum>
double sum_blocks(const Real* x, int64_t n, BlockSum block_sum) {
  std::vector<double> sums(static_cast<size_t>((n + kBlock - 1) / kBlock));
  parallel_ranges(n, kBlock, [&](int64_t begin, int64_t end) {
    sums[static_cast<size_t>(begin / kBlock)] = block_sum(x + begin, end - begin);
  });
  double total = 0;
  for (double s : sums) total += s;
  return total;
}

// Four rows at once, so that the sums are read and written a quarter as often.
ROWAN_VECTORIZED void add_rows_of(const Real* x, int64_t rows, int64_t columns, Real* out) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const Real *a = x + r * columns, *b = a + columns, *c = b + columns, *d = c + columns;
    ROWAN_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) out[j] += (a[j] + b[j]) + (c[j] + d[j]);
  }
  for (; r < rows; ++r) {
    const Real* a = x + r * columns;
    ROWAN_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j) out[j] += a[j];
  }
}

ROWAN_VECTORIZED Real exp_block(const Real* x, Real shift, Real* y, int64_t n) {
  ROWAN_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) y[i] = fast_exp(x[i] - shift);
  return lane_sum<Real>(n, [y](int64_t i) { return y[i]; });
}

}  // namespace

ROWAN_VECTORIZED double sum(const Real* x, int64_t n) {
  return lane_sum<double>(n, [x](int64_t i) { return static_cast<double>(x[i]); });
}

ROWAN_VECTORIZED double sum_of_squares(const Real* x, int64_t n) {
  return lane_sum<double>(n, [x](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); });
}

ROWAN_VECTORIZED double inner_product(const Real* a, const Real* b, int64_t n) {
  return lane_sum<double>(n, [a, b](int64_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

double parallel_sum(const Real* x, int64_t n) {
  return sum_blocks(x, n, sum);
}
double parallel_sum_of_squares(const Real* x, int64_t n) {
  return sum_blocks(x, n, sum_of_squares);
}

void add_column_sums(const Real* x, int64_t rows, int64_t columns, Real* out) {
  if (rows <= kRowsAPiece) return add_rows_of(x, rows, columns, out);
  Tensor partial = Tensor::zeros({(rows + kRowsAPiece - 1) / kRowsAPiece, columns});
  parallel_ranges(rows, kRowsAPiece, [&](int64_t begin, int64_t end) {
    add_rows_of(x + begin * columns, end - begin, columns, partial.data() + begin / kRowsAPiece * columns);
  });
  add_column_sums(partial.data(), partial.shape()[0], columns, out);
}

ROWAN_VECTORIZED Real max_of(const Real* x, int64_t n) {
  Real lane[kLanes];
  for (Real& m : lane) m = -std::numeric_limits<Real>::infinity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  for (int64_t l = 0; i + l < n; ++l) lane[l] = x[i + l] > lane[l] ? x[i + l] : lane[l];
  return *std::max_element(lane, lane + kLanes);
}

double exp_shifted(const Real* x, Real shift, Real* y, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i += kExpBlock)
    total += static_cast<double>(exp_block(x + i, shift, y + i, std::min(kExpBlock, n - i)));
  return total;
}

ROWAN_VECTORIZED void dot_rows(const Real* a, int64_t lda, const Real* b, int64_t ldb, int64_t rows, int64_t n, Real* out) {
  for (int64_t r = 0; r < rows; ++r) {
    const Real* x = a + r * lda;
    const Real* y = b + r * ldb;
    out[r] = lane_sum<Real>(n, [=](int64_t j) { return x[j] * y[j]; });
  }
}

}  // namespace rowan

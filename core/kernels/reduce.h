// Reductions in an order that depends on sizes only: the same bits for any number of threads and any instruction set.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

// Single-threaded; for use on a piece.
double sum(const Real* x, int64_t n);             // added in double
double sum_of_squares(const Real* x, int64_t n);  // squared and added in double: no overflow for any float
double inner_product(const Real* a, const Real* b, int64_t n);

// Over fixed blocks, in parallel; the blocks' sums are added in order.
double parallel_sum(const Real* x, int64_t n);
double parallel_sum_of_squares(const Real* x, int64_t n);

// out[j] += sum over rows of x[row][j]: the gradient of a bias. x is (rows, columns), contiguous. Multi-threaded.
void add_column_sums(const Real* x, int64_t rows, int64_t columns, Real* out);

// The two halves of a stable softmax over a row, single-threaded:
//   shift = max_of(x, n);  total = exp_shifted(x, shift, y, n);  then y / total, and log(total) + shift is the log-sum-exp.
// max_of skips NaN and is -infinity for n = 0; a NaN comes out of exp_shifted, whose total is then NaN too. y may be x.
Real max_of(const Real* x, int64_t n);
double exp_shifted(const Real* x, Real shift, Real* y, int64_t n);  // y = e^(x - shift); returns the sum of y

// out[r] = sum over i of a[r, i] b[r, i], rows lda and ldb apart (0: the same row every time); single-threaded.
void dot_rows(const Real* a, int64_t lda, const Real* b, int64_t ldb, int64_t rows, int64_t n, Real* out);

}  // namespace rowan

// Loops over rows that several rules and the driver share. All give the same bits on every instruction set: elementwise loops
// by nature, sums because their lanes are written out.
#pragma once

#include <cstdint>

#include "core/kernels/vectorize.h"
#include "core/real.h"

namespace rowan {

// x / y, and 0 where y is 0: an element that has seen no gradient stays where it is, whatever eps. NaN stays NaN.
ROWAN_INLINE Real quotient(Real x, Real y) {
  return y == 0 ? Real{0} : x / y;
}

void scale_row(Real* x, int64_t n, Real factor);                     // x *= factor
void clamp_row(Real* x, int64_t n, Real bound);                      // to [-bound, bound]
void scaled_copy(const Real* x, int64_t n, Real factor, Real* out);  // out = factor * x
void add_row(const Real* x, int64_t n, Real* out);                   // out += x
void add_scaled(const Real* x, int64_t n, Real factor, Real* out);   // out += factor * x
double sum_squares(const Real* x, int64_t n);                        // in double, in 8 lanes, lanes added pairwise

}  // namespace rowan

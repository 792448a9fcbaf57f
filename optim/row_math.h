// Loops over rows that several rules and the driver share. All give the same bits on every instruction set: elementwise loops
// by nature, sums because their lanes are written out.
#pragma once

#include <cstdint>

#include "core/kernels/vectorize.h"
#include "core/real.h"

namespace rowan {

void scale_row(Real* x, int64_t n, Real factor);                     // x *= factor
void clamp_row(Real* x, int64_t n, Real bound);                      // to [-bound, bound]
void scaled_copy(const Real* x, int64_t n, Real factor, Real* out);  // out = factor * x
void add_row(const Real* x, int64_t n, Real* out);                   // out += x
void add_scaled(const Real* x, int64_t n, Real factor, Real* out);   // out += factor * x
double sum_squares(const Real* x, int64_t n);                        // in double, in 8 lanes, lanes added pairwise

}  // namespace rowan

// Loops over n elements: single-threaded, vectorized, no autograd. Callers cut long arrays with parallel_ranges; results do not
// depend on the cut.
//
// An output may be the very array of an input (in place), but must not overlap it otherwise. "=" overwrites, "+=" adds.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

// How many elements a piece of a parallel elementwise loop takes.
inline constexpr int64_t kElementwiseGrain = 1 << 14;

// gelu(x) = x P(X < x), X ~ N(0,1): the exact form, by the error function (Hendrycks and Gimpel, 2016).
void gelu_forward(const Real* x, Real* y, int64_t n);                    // y = gelu(x)
void gelu_backward(const Real* x, const Real* dy, Real* dx, int64_t n);  // dx = gelu'(x) dy
void gelu_with_slope(const Real* x, Real* y, Real* slope, int64_t n);    // y = gelu(x), slope = gelu'(x)

// gelu_tanh(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the approximation that GPT-2 was trained with.
void gelu_tanh_forward(const Real* x, Real* y, int64_t n);
void gelu_tanh_backward(const Real* x, const Real* dy, Real* dx, int64_t n);
void gelu_tanh_with_slope(const Real* x, Real* y, Real* slope, int64_t n);

// silu(x) = x sigmoid(x), also called swish.
void silu_forward(const Real* x, Real* y, int64_t n);
void silu_backward(const Real* x, const Real* dy, Real* dx, int64_t n);

// swiglu(gate, up) = silu(gate) up (Shazeer, 2020, "GLU variants improve transformer").
void swiglu_forward(const Real* gate, const Real* up, Real* y, int64_t n);
void swiglu_backward(const Real* gate, const Real* up, const Real* dy, Real* dgate, Real* dup, int64_t n);  // both =

void add(const Real* a, const Real* b, Real* y, int64_t n);                  // y = a + b
void multiply(const Real* a, const Real* b, Real* y, int64_t n);             // y = a b
void accumulate(const Real* x, Real* y, int64_t n);                          // y += x
void axpy(Real a, const Real* x, Real* y, int64_t n);                        // y += a x
void multiply_accumulate(const Real* a, const Real* b, Real* y, int64_t n);  // y += a b
void scale(Real factor, Real* y, int64_t n);                                 // y *= factor

}  // namespace rowan

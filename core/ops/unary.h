// unary: an elementwise op of one input from its two loops, as core/kernels/elementwise.h declares them.
//
//   inline Variable gelu(const Variable& x) { return unary("gelu", x, gelu_forward, gelu_backward); }
//
// Any shape. Keeps a handle of x for backward.
#pragma once

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

using UnaryForward = void (*)(const Real* x, Real* y, int64_t n);
using UnaryBackward = void (*)(const Real* x, const Real* dy, Real* dx, int64_t n);  // dx =

inline Variable unary(const char* name, const Variable& x, UnaryForward forward, UnaryBackward backward) {
  const Real* in = x.value().data();
  Tensor y(x.shape());
  parallel_ranges(y.size(), kElementwiseGrain,
                  [&](int64_t begin, int64_t end) { forward(in + begin, y.data() + begin, end - begin); });
  return record(name, y, {x}, [x = x.value(), backward](const Tensor& dy, InputGrads& grads) {
    Tensor dx(x.shape());
    parallel_ranges(dx.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      backward(x.data() + begin, dy.data() + begin, dx.data() + begin, end - begin);
    });
    grads.add(0, dx);
  });
}

}  // namespace rowan

// swiglu: y = silu(gate) * up, elementwise, gate and up of the same shape (Shazeer, 2020, "GLU variants improve transformer").
//
//   dgate += dy up silu'(gate)        dup += dy silu(gate)
//
// The projections before and after it are linear ops of their own.
#pragma once

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

inline Variable swiglu(const Variable& gate, const Variable& up) {
  ROWAN_CHECK(gate.shape() == up.shape(), "[swiglu] gate is ", gate.shape(), " but up is ", up.shape());
  const Tensor g = gate.value(), u = up.value();
  Tensor y(g.shape());
  parallel_ranges(y.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
    swiglu_forward(g.data() + begin, u.data() + begin, y.data() + begin, end - begin);
  });
  return record("swiglu", y, {gate, up}, [g, u](const Tensor& dy, InputGrads& in) {
    Tensor dg(g.shape()), du(g.shape());
    parallel_ranges(dy.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
      swiglu_backward(g.data() + begin, u.data() + begin, dy.data() + begin, dg.data() + begin, du.data() + begin, end - begin);
    });
    if (in.wants(0)) in.add(0, dg);
    if (in.wants(1)) in.add(1, du);
  });
}

}  // namespace rowan

// dot: the sum of x times fixed weights, a scalar. It weighs an op's output into a loss.
//
//   y = sum_i x_i w_i        dx_i += w_i dy
//
// x and weights have the same shape, any; w is a constant. Summed in double, in order of index, whatever Real is.
#pragma once

#include "core/variable.h"

namespace rowan {

inline Variable dot(const Variable& x, const Tensor& weights) {
  ROWAN_CHECK(x.shape() == weights.shape(), "[dot] x is ", x.shape(), " but the weights are ", weights.shape());
  double sum = 0;
  const Real* a = x.value().data();
  const Real* w = weights.data();
  for (int64_t i = 0; i < x.value().size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(w[i]);
  return record("dot", Tensor::scalar(static_cast<Real>(sum)), {x}, [weights](const Tensor& dy, InputGrads& in) {
    const Real scale = dy.item();
    Real* dx = in.dense(0).data();
    const Real* v = weights.data();
    for (int64_t i = 0; i < weights.size(); ++i) dx[i] += scale * v[i];
  });
}

}  // namespace rowan

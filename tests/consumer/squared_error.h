// squared_error: an op of our own, in one file.
//
//   y = sum_i (x_i - target_i)^2 / n        dx_i += 2 (x_i - target_i) dy / n
//
// x and target have the same shape, any; n is their size; target is a constant.
#pragma once

#include "core/variable.h"

inline rowan::Variable squared_error(const rowan::Variable& x, const rowan::Tensor& target) {
  ROWAN_CHECK(x.shape() == target.shape(), "[squared_error] x is ", x.shape(), " but the target is ", target.shape());
  const int64_t n = target.size();
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double difference = static_cast<double>(x.value().data()[i]) - static_cast<double>(target.data()[i]);
    sum += difference * difference;
  }
  const rowan::Tensor y = rowan::Tensor::scalar(static_cast<rowan::Real>(sum / static_cast<double>(n)));
  return rowan::record("squared_error", y, {x}, [value = x.value(), target, n](const rowan::Tensor& dy, rowan::InputGrads& in) {
    const rowan::Real scale = 2 * dy.item() / static_cast<rowan::Real>(n);
    rowan::Real* dx = in.dense(0).data();
    for (int64_t i = 0; i < n; ++i) dx[i] += scale * (value.data()[i] - target.data()[i]);
  });
}

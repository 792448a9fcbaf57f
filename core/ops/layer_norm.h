// layer_norm: every row of x to mean 0 and variance 1, then scaled and shifted by element (Ba, Kiros, Hinton, 2016).
//
//   y = xhat * weight + bias,  xhat = (x - mean(x)) rstd,  rstd = 1 / sqrt(variance(x) + eps)
//   g = dy * weight:  dx += rstd (g - mean(g) - xhat mean(g xhat)),  dweight += sum of dy xhat,  dbias += sum of dy
//
// x (...,D), weight (D), bias (D) or empty; eps > 0. Keeps x, and the mean and rstd of each row.
#pragma once

#include "core/ops/detail/norm_backward.h"

namespace rowan {

inline Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  detail::check_norm("layer_norm", x, weight, eps);
  ROWAN_CHECK(bias.empty() || bias.shape() == weight.shape(), "[layer_norm] the bias is ", bias.shape(), " but the weight ",
              weight.shape());
  const int64_t width = x.shape().back(), rows = x.shape().rows();
  const Tensor in = x.value(), w = weight.value();
  Tensor y(x.shape()), mean({rows}), rstd({rows});
  const Real* b = bias.empty() ? nullptr : bias.value().data();
  parallel_ranges(rows, detail::norm_rows_a_piece(rows), [&](int64_t begin, int64_t end) {
    layer_norm_forward({in.data() + begin * width, w.data(), end - begin, width}, b, eps, y.data() + begin * width,
                       {mean.data() + begin, rstd.data() + begin});
  });
  return record("layer_norm", y, {x, weight, bias}, [in, w, mean, rstd](const Tensor& dy, InputGrads& grads) mutable {
    detail::norm_backward(layer_norm_backward, in, w, {mean.data(), rstd.data()}, dy, grads, grads.wants(2));
  });
}

}  // namespace rowan

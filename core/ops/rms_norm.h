// rms_norm: every row of x divided by its root mean square, then scaled by element (Zhang, Sennrich, 2019).
//
//   y = xhat * weight,  xhat = x rstd,  rstd = 1 / sqrt(mean(x^2) + eps)
//   g = dy * weight:  dx += rstd (g - xhat mean(g xhat)),  dweight += sum of dy xhat
//
// x (...,D), weight (D); eps > 0. Keeps x, and the rstd of each row.
#pragma once

#include "core/ops/detail/norm_backward.h"

namespace rowan {

inline Variable rms_norm(const Variable& x, const Variable& weight, double eps) {
  detail::check_norm("rms_norm", x, weight, eps);
  const int64_t width = x.shape().back(), rows = x.shape().rows();
  const Tensor in = x.value(), w = weight.value();
  Tensor y(x.shape()), rstd({rows});
  parallel_ranges(rows, detail::norm_rows_a_piece(rows), [&](int64_t begin, int64_t end) {
    rms_norm_forward({in.data() + begin * width, w.data(), end - begin, width}, eps, y.data() + begin * width,
                     {nullptr, rstd.data() + begin});
  });
  return record("rms_norm", y, {x, weight}, [in, w, rstd](const Tensor& dy, InputGrads& grads) mutable {
    detail::norm_backward(rms_norm_backward, in, w, {nullptr, rstd.data()}, dy, grads, false);
  });
}

}  // namespace rowan

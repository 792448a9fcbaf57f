// multiply: y = a * b elementwise, same shape.        da += dy b        db += dy a
#pragma once

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

inline Variable multiply(const Variable& a, const Variable& b) {
  ROWAN_CHECK(a.shape() == b.shape(), "[multiply] ", a.shape(), " and ", b.shape(), " are not of the same shape");
  const Tensor u = a.value(), v = b.value();
  Tensor y(u.shape());
  parallel_ranges(y.size(), kElementwiseGrain,
                  [&](int64_t begin, int64_t end) { multiply(u.data() + begin, v.data() + begin, y.data() + begin, end - begin); });
  return record("multiply", y, {a, b}, [u, v](const Tensor& dy, InputGrads& in) {
    const auto add_product = [&](size_t i, const Tensor& other) {
      if (!in.wants(i)) return;
      Real* dx = in.dense(i).data();
      parallel_ranges(dy.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
        multiply_accumulate(dy.data() + begin, other.data() + begin, dx + begin, end - begin);
      });
    };
    add_product(0, v);
    add_product(1, u);
  });
}

}  // namespace rowan

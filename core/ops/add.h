// add: y = a + b, same shape. Its gradient is dy for both, handed on without a copy.
#pragma once

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

inline Variable add(const Variable& a, const Variable& b) {
  ROWAN_CHECK(a.shape() == b.shape(), "[add] ", a.shape(), " and ", b.shape(), " are not of the same shape");
  Tensor y(a.shape());
  parallel_ranges(y.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
    add(a.value().data() + begin, b.value().data() + begin, y.data() + begin, end - begin);
  });
  return record("add", y, {a, b}, [](const Tensor& dy, InputGrads& in) {
    for (size_t i : {0, 1})
      if (in.wants(i)) in.add(i, dy);
  });
}

}  // namespace rowan

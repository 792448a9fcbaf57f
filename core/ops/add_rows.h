// add_rows: y = x + rows, with rows repeated over the leading dimensions of x: positions (T,D) onto a batch (B,T,D).
//
//   y[b] = x[b] + rows        dx += dy        drows += sum over b of dy[b], in order of b
#pragma once

#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

inline Variable add_rows(const Variable& x, const Variable& rows) {
  const Shape &whole = x.shape(), &part = rows.shape();
  bool fits = part.rank() <= whole.rank();
  for (int i = 1; fits && i <= part.rank(); ++i) fits = part[part.rank() - i] == whole[whole.rank() - i];
  ROWAN_CHECK(fits, "[add_rows] ", part, " is not the end of ", whole);
  const int64_t size = part.size(), copies = size == 0 ? 0 : whole.size() / size;
  Tensor y(whole);
  parallel_ranges(size, kElementwiseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < copies; ++b)
      add(x.value().data() + b * size + begin, rows.value().data() + begin, y.data() + b * size + begin, end - begin);
  });
  return record("add_rows", y, {x, rows}, [size, copies](const Tensor& dy, InputGrads& in) {
    if (in.wants(0)) in.add(0, dy);
    if (!in.wants(1)) return;
    Real* drows = in.dense(1).data();
    parallel_ranges(size, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t b = 0; b < copies; ++b) accumulate(dy.data() + b * size + begin, drows + begin, end - begin);
    });
  });
}

}  // namespace rowan

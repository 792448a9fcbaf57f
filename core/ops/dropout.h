// dropout: every element is zero with probability p, else divided by 1 - p, so that the mean stays (Srivastava et al., 2014).
//
// Any shape. Which elements go is a pure function of (key, element index): backward computes the mask again, nothing is kept, and
// the number of threads has no say. p in [0, 1); p = 0 returns x itself. Callers decide whether they are training.
#pragma once

#include <algorithm>
#include <array>

#include "core/kernels/dropout.h"
#include "core/kernels/elementwise.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

namespace detail {

inline Tensor drop(const Tensor& x, double p, const RandomKey& key) {
  Tensor y(x.shape());
  parallel_ranges(x.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) {
    std::array<Real, 1024> scales;
    for (int64_t i = begin; i < end; i += std::ssize(scales)) {
      const int64_t n = std::min<int64_t>(std::ssize(scales), end - i);
      dropout_scale(key, p, static_cast<uint64_t>(i), n, scales.data());
      multiply(x.data() + i, scales.data(), y.data() + i, n);
    }
  });
  return y;
}

}  // namespace detail

inline Variable dropout(const Variable& x, double p, const RandomKey& key) {
  ROWAN_CHECK(p >= 0 && p < 1, "[dropout] the probability is ", p, "; expected one in [0, 1)");
  if (p == 0) return x;
  return record("dropout", detail::drop(x.value(), p, key), {x},
                [p, key](const Tensor& dy, InputGrads& in) { in.add(0, detail::drop(dy, p, key)); });
}

}  // namespace rowan

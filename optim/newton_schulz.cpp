#include "optim/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/kernels/elementwise.h"
#include "core/kernels/gemm.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"

namespace rowan {
namespace {

constexpr Real kA = static_cast<Real>(3.4445), kB = static_cast<Real>(-4.7750), kC = static_cast<Real>(2.0315);
constexpr double kEpsilon = 1e-7;

void scale_all(Tensor& x, Real factor) {
  parallel_ranges(x.size(), kElementwiseGrain, [&](int64_t begin, int64_t end) { scale(factor, x.data() + begin, end - begin); });
}

void copy_all(const Tensor& from, Tensor& to) {
  parallel_ranges(from.size(), kElementwiseGrain,
                  [&](int64_t begin, int64_t end) { std::copy_n(from.data() + begin, end - begin, to.data() + begin); });
}

}  // namespace

void newton_schulz(Tensor& x, int64_t steps) {
  ROWAN_CHECK(x.shape().rank() == 2, "[newton_schulz] expected a matrix, not ", x.shape());
  const int64_t m = x.shape()[0], n = x.shape()[1], k = std::min(m, n);
  const UseMatmulPrecision full(MatmulPrecision::kFloat32);  // whatever the training's is
  const bool wide = m <= n;  // A is the smaller of X X^T and X^T X; the polynomial is the same from either side
  scale_all(x, static_cast<Real>(1 / (std::sqrt(parallel_sum_of_squares(x.data(), x.size())) + kEpsilon)));
  Tensor a({k, k}), b({k, k}), next({m, n});
  for (int64_t step = 0; step < steps; ++step) {
    if (wide) {
      gemm(Op::kNone, Op::kTranspose, m, m, n, 1, x.data(), n, x.data(), n, 0, a.data(), m);
    } else {
      gemm(Op::kTranspose, Op::kNone, n, n, m, 1, x.data(), n, x.data(), n, 0, a.data(), n);
    }
    copy_all(a, b);
    gemm(Op::kNone, Op::kNone, k, k, k, kC, a.data(), k, a.data(), k, kB, b.data(), k);
    copy_all(x, next);
    if (wide) {
      gemm(Op::kNone, Op::kNone, m, n, m, 1, b.data(), m, x.data(), n, kA, next.data(), n);
    } else {
      gemm(Op::kNone, Op::kNone, m, n, n, 1, x.data(), n, b.data(), n, kA, next.data(), n);
    }
    std::swap(x, next);
  }
}

double newton_schulz_flops(const Shape& shape, int64_t steps) {
  const auto k = static_cast<double>(std::min(shape[0], shape[1])), elements = static_cast<double>(shape.size());
  return static_cast<double>(steps) * (4 * elements * k + 2 * k * k * k);
}

}  // namespace rowan

#include "optim/adam_jump.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/vectorize.h"

namespace rowan {
namespace {

struct TailStep {
  double beta1, beta2, shrink, step_size, inside, root_factor, outside;
};

ROWAN_VECTORIZED void tail_step(double* __restrict w, double* __restrict m, double* __restrict v, int64_t n, const TailStep s) {
  for (int64_t j = 0; j < n; ++j) {
    m[j] *= s.beta1;
    v[j] *= s.beta2;
    const double denominator = std::sqrt(v[j] + s.inside) * s.root_factor + s.outside;
    w[j] = w[j] * s.shrink - (denominator == 0 ? 0 : s.step_size * m[j] / denominator);
  }
}

// The largest |m| / sqrt(v) of a row; infinity when a moment stands without its square.
double largest_ratio(const double* m, const double* v, int64_t n) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (m[j] == 0) continue;
    largest = std::max(largest, v[j] > 0 ? std::abs(m[j]) / std::sqrt(v[j]) : std::numeric_limits<double>::infinity());
  }
  return largest;
}

}  // namespace

bool adam_jump(const RowJump& row, double beta1, double beta2) {
  const double r = beta1 / std::sqrt(beta2);
  if (!(r < 1)) return false;
  const auto n = static_cast<size_t>(row.width);
  std::vector<double> w(row.weight, row.weight + n), m(row.slots[0], row.slots[0] + n), v(row.slots[1], row.slots[1] + n);
  // A step's size is lr / (1 - beta1^t), or that times sqrt(1 - beta2^t) <= 1; root_factor >= 1 where that is not so.
  const double first_size = row.max_lr / (1 - std::pow(beta1, static_cast<double>(row.missed[0].scalars.step)));
  const double enough = std::numeric_limits<Real>::epsilon() / 2 * row.max_lr;
  double left = largest_ratio(m.data(), v.data(), row.width) * first_size * r / (1 - r);
  if (!std::isfinite(left)) return false;
  if (row.count > kLongestTail && left * std::pow(r, kLongestTail) > enough) return false;  // said before the work, not after
  int64_t s = 0;
  for (; s < row.count && left > enough; ++s, left *= r) {
    if (s == kLongestTail) return false;
    const StepRecord& step = row.missed[s];
    tail_step(w.data(), m.data(), v.data(), row.width,
              {beta1, beta2, step.shrink, step.scalars.c[0], step.scalars.c[1], step.scalars.c[2], step.scalars.c[3]});
  }
  const double decay = row.decay_from(s), rest = static_cast<double>(row.count - s);
  const double power1 = std::pow(beta1, rest), power2 = std::pow(beta2, rest);
  for (size_t j = 0; j < n; ++j) {
    row.weight[j] = static_cast<Real>(w[j] * decay);
    row.slots[0][j] = static_cast<Real>(m[j] * power1);
    row.slots[1][j] = static_cast<Real>(v[j] * power2);
  }
  return true;
}

}  // namespace rowan

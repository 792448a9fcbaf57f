#include "core/kernels/softmax_loss.h"

#include <cmath>
#include <limits>

#include "core/kernels/elementwise.h"
#include "core/kernels/lanes.h"
#include "core/kernels/reduce.h"

namespace rowan {
namespace {

// 0 if all are finite, NaN otherwise. A logit of minus infinity would else be a probability of zero like any other.
ROWAN_VECTORIZED Real zero_if_finite(const Real* z, int64_t n) {
  return lane_sum<Real>(n, [z](int64_t i) { return z[i] * 0; });
}

}  // namespace

RowLoss softmax_loss(Real* z, int64_t v, int32_t target, double scale, bool gradient) {
  const double poison = static_cast<double>(zero_if_finite(z, v));
  const Real largest = max_of(z, v);
  const double target_logit = static_cast<double>(z[target]) - static_cast<double>(largest);
  const double total = exp_shifted(z, largest, z, v);
  const double log_total = std::log(total);
  if (gradient) {
    rowan::scale(static_cast<Real>(scale / total), z, v);
    z[target] -= static_cast<Real>(scale);
  }
  return {log_total - target_logit + poison, log_total + static_cast<double>(largest) + poison};
}

}  // namespace rowan

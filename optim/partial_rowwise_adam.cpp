// partial_rowwise_adam: Adam with one second moment for a row.
//
//   m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) * mean over the row of g^2
//   w -= lr / c1 * m / (sqrt(v / c2) + eps)
//
// State: m (exp_avg) per element, v (exp_avg_sq) per row: D + 1 numbers a row where Adam has 2 D. As FBGEMM's optimizer of that
// name; decoupled weight decay.
#include "core/kernels/vectorize.h"
#include "optim/adam_like.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void momentum_step(Real* __restrict w, Real* __restrict m, const Real* __restrict g, int64_t n, RunningMean mean,
                                    Real step_size) {
  for (int64_t j = 0; j < n; ++j) {
    m[j] = mean(m[j], g[j]);
    w[j] -= step_size * m[j];
  }
}

class PartialRowwiseAdam final : public AdamLike {
 public:
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq", Slot::Per::kRow}}; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const StepScalars& s = b.scalars(k);
      Real& v = *b.slot(1, k);
      v = static_cast<Real>(beta2_ * static_cast<double>(v) +
                            (1 - beta2_) * sum_squares(b.grad(k), b.width) / static_cast<double>(b.width));
      const double denominator = std::sqrt(static_cast<double>(v)) * s.c[1] + eps_;
      const double size = denominator > 0 ? s.c[0] / denominator : 0;
      momentum_step(b.weight(k), b.slot(0, k), b.grad(k), b.width, RunningMean(beta1_), static_cast<Real>(size));
    }
  }
};

ROWAN_REGISTER_OPTIMIZER("partial_rowwise_adam", PartialRowwiseAdam);

}  // namespace
}  // namespace rowan

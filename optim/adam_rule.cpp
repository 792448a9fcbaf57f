#include "optim/adam_rule.h"

#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/adam_jump.h"
#include "optim/row_math.h"
#include "optim/running_mean.h"

namespace rowan {
namespace {

// denominator = sqrt(v + inside) * root_factor + outside covers the three places of eps.
struct AdamScalars {
  RunningMean mean;
  Real beta2, one_minus_beta2, step_size, inside, root_factor, outside, grad_scale, shrink;
};

ROWAN_VECTORIZED void adam_row(Real* __restrict w, Real* __restrict m, Real* __restrict v, const Real* __restrict g, int64_t n,
                               const AdamScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    const Real gj = s.grad_scale * g[j];
    const Real mj = s.mean(m[j], gj);
    const Real vj = s.beta2 * v[j] + s.one_minus_beta2 * (gj * gj);
    m[j] = mj;
    v[j] = vj;
    w[j] = s.shrink * w[j] - quotient(s.step_size * mj, std::sqrt(vj + s.inside) * s.root_factor + s.outside);
  }
}

}  // namespace

void AdamRule::visit(FieldVisitor& v) {
  RowOptimizer::visit(v);
  v("beta1", beta1_, "decay of the mean of gradients", from_below(0, 1));
  v("beta2", beta2_, "decay of the mean of squared gradients", from_below(0, 1));
  v("eps", eps_, "keeps the denominator from 0", at_least(0));
  v("eps_mode", eps_mode_,
    "where eps stands: sqrt(v/c2) + eps (standard), sqrt(v) + eps with the correction outside (hat), sqrt(v/c2 + eps) (inside)",
    one_of({"standard", "hat", "inside"}));
}

void AdamRule::fill_scalars(StepScalars& s) const {
  const double t = static_cast<double>(s.step), c1 = 1 - std::pow(beta1_, t), c2 = 1 - std::pow(beta2_, t);
  const bool hat = eps_mode_ == "hat", inside = eps_mode_ == "inside";
  s.c[0] = hat ? s.lr * std::sqrt(c2) / c1 : s.lr / c1;
  s.c[1] = inside ? eps_ * c2 : 0;  // sqrt(v/c2 + eps) = sqrt(v + eps c2) / sqrt(c2)
  s.c[2] = hat ? 1 : 1 / std::sqrt(c2);
  s.c[3] = inside ? 0 : eps_;
}

void AdamRule::update_rows(const RowBlock& b) const {
  const RunningMean mean(beta1_);
  const auto beta2 = static_cast<Real>(beta2_), one_minus_beta2 = static_cast<Real>(1 - beta2_);
  for (int64_t k = 0; k < b.rows; ++k) {
    const StepScalars& step = b.scalars(k);
    const AdamScalars s{mean,
                        beta2,
                        one_minus_beta2,
                        static_cast<Real>(step.c[0]),
                        static_cast<Real>(step.c[1]),
                        static_cast<Real>(step.c[2]),
                        static_cast<Real>(step.c[3]),
                        b.grad_scale,
                        b.shrink};
    adam_row(b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width, s);
  }
}

bool AdamRule::jump(const RowJump& row) const {
  return adam_jump(row, RunningMean(beta1_).kept(), static_cast<double>(static_cast<Real>(beta2_)));
}

}  // namespace rowan

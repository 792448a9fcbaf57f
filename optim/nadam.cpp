// nadam: Adam that looks ahead along its momentum.
//
//   m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) g^2
//   w -= lr * (beta1 m / (1 - beta1^(t+1)) + (1 - beta1) g / c1) / (sqrt(v / c2) + eps)
//
// This is the algorithm with a constant beta1 (Dozat, "Incorporating Nesterov momentum into Adam", 2016, section 2), without the
// warm-up of beta1 that torch.optim.NAdam adds. State: m (exp_avg), v (exp_avg_sq) per element.
#include "core/kernels/vectorize.h"
#include "optim/adam_like.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

struct NadamScalars {
  RunningMean mean;
  Real beta2, one_minus_beta2, ahead, now, root_factor, eps;
};

ROWAN_VECTORIZED void nadam_row(Real* __restrict w, Real* __restrict m, Real* __restrict v, const Real* __restrict g, int64_t n,
                                const NadamScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    m[j] = s.mean(m[j], g[j]);
    v[j] = s.beta2 * v[j] + s.one_minus_beta2 * (g[j] * g[j]);
    w[j] -= quotient(s.ahead * m[j] + s.now * g[j], std::sqrt(v[j]) * s.root_factor + s.eps);
  }
}

class Nadam final : public AdamLike {
 public:
  Nadam() { axes_.decay = "coupled"; }
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  bool elementwise() const override { return true; }

  void fill_scalars(StepScalars& s) const override {
    AdamLike::fill_scalars(s);
    s.c[3] = s.lr * beta1_ / (1 - std::pow(beta1_, static_cast<double>(s.step) + 1));
    s.c[4] = s.c[0] * (1 - beta1_);
  }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const StepScalars& step = b.scalars(k);
      const Scalars s = scalars_of(step);
      nadam_row(
          b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width,
          {s.mean, s.beta2, s.one_minus_beta2, static_cast<Real>(step.c[3]), static_cast<Real>(step.c[4]), s.root_factor, s.eps});
    }
  }
};

ROWAN_REGISTER_OPTIMIZER("nadam", Nadam);

}  // namespace
}  // namespace rowan

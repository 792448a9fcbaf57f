// amsgrad: Adam whose denominator never falls, as torch.optim.Adam with amsgrad.
//
//   m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) g^2     u = max(u, v)
//   w -= lr / c1 * m / (sqrt(u) / sqrt(c2) + eps)
//
// State: m (exp_avg), v (exp_avg_sq), u (max_exp_avg_sq) per element. Reddi, Kale, Kumar, "On the convergence of Adam and beyond",
// ICLR 2018. catch_up = closed is not possible: which v was the largest depends on the path.
#include "core/kernels/vectorize.h"
#include "optim/adam_like.h"
#include "optim/row_math.h"

namespace rowan {
namespace {

struct AmsScalars {
  RunningMean mean;
  Real beta2, one_minus_beta2, step_size, root_factor, eps;
};

ROWAN_VECTORIZED void amsgrad_row(Real* __restrict w, Real* __restrict m, Real* __restrict v, Real* __restrict u,
                                  const Real* __restrict g, int64_t n, const AmsScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    m[j] = s.mean(m[j], g[j]);
    v[j] = s.beta2 * v[j] + s.one_minus_beta2 * (g[j] * g[j]);
    u[j] = v[j] > u[j] ? v[j] : u[j];
    w[j] -= quotient(s.step_size * m[j], std::sqrt(u[j]) * s.root_factor + s.eps);
  }
}

class AmsGrad final : public AdamLike {
 public:
  AmsGrad() { axes_.decay = "coupled"; }
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}}; }
  bool elementwise() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const Scalars s = scalars_of(b.scalars(k));
      amsgrad_row(b.weight(k), b.slot(0, k), b.slot(1, k), b.slot(2, k), b.grad(k), b.width,
                  {s.mean, s.beta2, s.one_minus_beta2, s.step_size, s.root_factor, s.eps});
    }
  }
};

ROWAN_REGISTER_OPTIMIZER("amsgrad", AmsGrad);

}  // namespace
}  // namespace rowan

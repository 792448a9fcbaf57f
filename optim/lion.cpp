// lion: the sign of an interpolated momentum, with decoupled weight decay.
//
//   w -= lr * sign(beta1 m + (1 - beta1) g)      m = beta2 m + (1 - beta2) g
//
// State: m (exp_avg) per element. On a dense table a row without a gradient moves by a full lr at every step for as long as its m
// is not 0, which are thousands of steps: for tables, untouched = frozen is usually meant. Chen et al., "Symbolic discovery of
// optimization algorithms", NeurIPS 2023.
#include "core/kernels/vectorize.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

struct LionScalars {
  Real lr, beta1, one_minus_beta1, beta2, one_minus_beta2, grad_scale;
};

ROWAN_VECTORIZED void lion_row(Real* __restrict w, Real* __restrict m, const Real* __restrict g, int64_t n, const LionScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    const Real gj = s.grad_scale * g[j];
    const Real c = s.beta1 * m[j] + s.one_minus_beta1 * gj;
    w[j] -= s.lr * static_cast<Real>((c > 0) - (c < 0));
    m[j] = s.beta2 * m[j] + s.one_minus_beta2 * gj;
  }
}

class Lion final : public RowOptimizer {
 public:
  Lion() { lr_ = 1e-4; }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("beta1", beta1_, "share of the momentum in the direction", from_below(0, 1));
    v("beta2", beta2_, "decay of the momentum", from_below(0, 1));
  }
  std::vector<Slot> slots() const override { return {{"exp_avg"}}; }
  bool elementwise() const override { return true; }
  bool scales_gradient() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    const LionScalars s{static_cast<Real>(b.lr),   static_cast<Real>(beta1_),     static_cast<Real>(1 - beta1_),
                        static_cast<Real>(beta2_), static_cast<Real>(1 - beta2_), b.grad_scale};
    for (int64_t k = 0; k < b.rows; ++k) lion_row(b.weight(k), b.slot(0, k), b.grad(k), b.width, s);
  }

 private:
  double beta1_ = 0.9;
  double beta2_ = 0.99;
};

ROWAN_REGISTER_OPTIMIZER("lion", Lion);

}  // namespace
}  // namespace rowan

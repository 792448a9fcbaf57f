// ftrl: follow the regularized leader, proximal, with a learning rate per element: sparse weights by l1.
//
//   in the paper's terms, with n the sum of squares, z the linear term and r = (beta + sqrt(n)) / lr:
//     z += g - (r_new - r_old) w     n += g^2     w = 0 where |z| <= l1, else (sign(z) l1 - z) / (r_new + l2)
//   z is kept multiplied by lr, so that a schedule scales the gradients' share alone; at a constant rate the two are the same:
//     z += lr_t g - (sqrt(n_new) - sqrt(n_old)) w     w = 0 where |z| <= lr l1, else (sign(z) lr l1 - z) / (beta + sqrt(n_new) + lr
//     l2)
//
// State: z, n per element. z starts, at an element's first gradient, from the value that stands for the initial weight: the paper
// starts from weights of zero. A zero gradient changes nothing, so a row-sparse table is exactly a dense one. weight_decay can
// act besides l2 (which shrinks towards 0 through the formula) as a part of the gradient: decay = coupled. McMahan et al., "Ad
// click prediction: a view from the trenches", KDD 2013, algorithm 1.
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

struct FtrlScalars {
  Real lr, beta, l1, l2;  // l1, l2 already times lr
};

ROWAN_VECTORIZED void ftrl_row(Real* __restrict w, Real* __restrict z, Real* __restrict n, const Real* __restrict g, int64_t size,
                               const FtrlScalars s) {
  for (int64_t j = 0; j < size; ++j) {
    const Real sign_w = static_cast<Real>((w[j] > 0) - (w[j] < 0));
    const Real before = n[j] == 0 ? -w[j] * (s.beta + s.l2) - sign_w * s.l1 : z[j];
    const Real squares = n[j] + g[j] * g[j], root = std::sqrt(squares);
    const Real linear = before + s.lr * g[j] - (root - std::sqrt(n[j])) * w[j];
    const Real sign_z = static_cast<Real>((linear > 0) - (linear < 0));
    const Real next = std::abs(linear) <= s.l1 ? Real{0} : (sign_z * s.l1 - linear) / (s.beta + root + s.l2);
    const bool idle = squares == n[j];  // no gradient, or one too small to be counted
    w[j] = idle ? w[j] : next;
    z[j] = idle ? z[j] : linear;
    n[j] = squares;
  }
}

class Ftrl final : public RowOptimizer {
 public:
  Ftrl() {
    lr_ = 0.1;
    axes_.decay = "none";
  }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("beta", beta_, "added to the root of the sum of squares", above(0));
    v("l1", l1_, "L1 penalty: weights whose evidence stays below it are 0", at_least(0));
    v("l2", l2_, "L2 penalty", at_least(0));
  }
  void validate() const override {
    RowOptimizer::validate();
    ROWAN_CHECK(weight_decay() == 0 || !axes_.decoupled(), "[ftrl] weight_decay = ", weight_decay(), " with decay = \"",
                axes_.decay,
                "\": a weight is made anew from z and n at its next gradient, which undoes what decayed it in between; use l2, or "
                "decay = \"coupled\"");
  }
  std::vector<Slot> slots() const override { return {{"z"}, {"n"}}; }
  bool elementwise() const override { return true; }
  bool idle_without_gradient() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    const FtrlScalars s{static_cast<Real>(b.lr), static_cast<Real>(beta_), static_cast<Real>(lr() * l1_),
                        static_cast<Real>(lr() * l2_)};
    for (int64_t k = 0; k < b.rows; ++k) ftrl_row(b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width, s);
  }

 private:
  double beta_ = 1;
  double l1_ = 0;
  double l2_ = 0;
};

ROWAN_REGISTER_OPTIMIZER("ftrl", Ftrl);

}  // namespace
}  // namespace rowan

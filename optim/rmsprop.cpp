// rmsprop: divides by the root of a running mean of squares, as torch.optim.RMSprop (not centered).
//
//   v = alpha v + (1 - alpha) g^2      u = g / (sqrt(v) + eps)
//   w -= lr * u   or, with momentum,   b = momentum b + u, w -= lr * b
//
// State: v (square_avg), and b (momentum_buffer) with momentum, per element. Tieleman and Hinton, COURSERA lecture 6.5, 2012.
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_math.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

struct RmsScalars {
  Real lr, alpha, one_minus_alpha, eps, momentum;
};

ROWAN_VECTORIZED void rms_row(Real* __restrict w, Real* __restrict v, const Real* __restrict g, int64_t n, const RmsScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    v[j] = s.alpha * v[j] + s.one_minus_alpha * (g[j] * g[j]);
    w[j] -= quotient(s.lr * g[j], std::sqrt(v[j]) + s.eps);
  }
}

ROWAN_VECTORIZED void rms_momentum_row(Real* __restrict w, Real* __restrict v, Real* __restrict b, const Real* __restrict g,
                                       int64_t n, const RmsScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    v[j] = s.alpha * v[j] + s.one_minus_alpha * (g[j] * g[j]);
    b[j] = s.momentum * b[j] + quotient(g[j], std::sqrt(v[j]) + s.eps);
    w[j] -= s.lr * b[j];
  }
}

class RmsProp final : public RowOptimizer {
 public:
  RmsProp() {
    lr_ = 1e-2;
    axes_.decay = "coupled";
  }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("alpha", alpha_, "decay of the mean of squares", from_below(0, 1));
    v("eps", eps_, "keeps the denominator from 0", at_least(0));
    v("momentum", momentum_, "share of the last update that is kept (0: none, and no state)", from_below(0, 1));
  }
  std::vector<Slot> slots() const override {
    return momentum_ > 0 ? std::vector<Slot>{{"square_avg"}, {"momentum_buffer"}} : std::vector<Slot>{{"square_avg"}};
  }
  bool elementwise() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    const RmsScalars s{static_cast<Real>(b.lr), static_cast<Real>(alpha_), static_cast<Real>(1 - alpha_), static_cast<Real>(eps_),
                       static_cast<Real>(momentum_)};
    for (int64_t k = 0; k < b.rows; ++k) {
      if (momentum_ > 0) {
        rms_momentum_row(b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width, s);
      } else {
        rms_row(b.weight(k), b.slot(0, k), b.grad(k), b.width, s);
      }
    }
  }

 private:
  double alpha_ = 0.99;
  double eps_ = 1e-8;
  double momentum_ = 0;
};

ROWAN_REGISTER_OPTIMIZER("rmsprop", RmsProp);

}  // namespace
}  // namespace rowan

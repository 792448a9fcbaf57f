// lars: momentum with a learning rate in proportion to the norm of the row over that of its gradient.
//
//   local = eta * |w| / (|g| + weight_decay * |w|), 1 when |w| or |g| is 0
//   b = momentum b + lr * local * (g + weight_decay * w)      w -= b
//
// State: b (momentum_buffer) per element. Ratios are per row (a vector is one row), as FBGEMM has them for tables; the paper takes
// them per layer. You, Gitman, Ginsburg, "Large batch training of convolutional networks", 2017.
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_math.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void lars_row(Real* __restrict w, Real* __restrict b, const Real* __restrict g, int64_t n, Real momentum,
                               Real size, Real decay) {
  for (int64_t j = 0; j < n; ++j) {
    b[j] = momentum * b[j] + size * (g[j] + decay * w[j]);
    w[j] -= b[j];
  }
}

class Lars final : public RowOptimizer {
 public:
  Lars() { lr_ = 0.1; }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("momentum", momentum_, "share of the last update that is kept", from_below(0, 1));
    v("eta", eta_, "trust coefficient: the largest step as a share of the row's norm, before lr", above(0));
  }
  std::vector<Slot> slots() const override { return {{"momentum_buffer"}}; }
  bool decays_weights() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const double weight = std::sqrt(sum_squares(b.weight(k), b.width)), gradient = std::sqrt(sum_squares(b.grad(k), b.width));
      const double local = weight > 0 && gradient > 0 ? eta_ * weight / (gradient + b.weight_decay * weight) : 1;
      lars_row(b.weight(k), b.slot(0, k), b.grad(k), b.width, static_cast<Real>(momentum_), static_cast<Real>(b.lr * local),
               static_cast<Real>(b.weight_decay));
    }
  }

 private:
  double momentum_ = 0.9;
  double eta_ = 0.02;
};

ROWAN_REGISTER_OPTIMIZER("lars", Lars);

}  // namespace
}  // namespace rowan

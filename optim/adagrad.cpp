// adagrad: a learning rate for each element that falls with the squares it has seen, as torch.optim.Adagrad without lr_decay.
//
//   h += g^2        w -= lr * g / (sqrt(h) + eps)
//
// State: h (sum) per element, from initial_accumulator. A zero gradient changes nothing, so a row-sparse table is exactly a dense
// one. Duchi, Hazan, Singer, "Adaptive subgradient methods", JMLR 2011.
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_math.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void adagrad_row(Real* __restrict w, Real* __restrict h, const Real* __restrict g, int64_t n, Real lr, Real eps,
                                  Real grad_scale) {
  for (int64_t j = 0; j < n; ++j) {
    const Real gj = grad_scale * g[j];
    h[j] += gj * gj;
    // 0 / 0 where eps and the accumulator are 0 must stay no step.
    w[j] -= quotient(lr * gj, std::sqrt(h[j]) + eps);
  }
}

class Adagrad final : public RowOptimizer {
 public:
  Adagrad() {
    lr_ = 1e-2;
    axes_.decay = "coupled";
  }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("eps", eps_, "keeps the denominator from 0", at_least(0));
    v("initial_accumulator", initial_, "what the sum of squares starts from", at_least(0));
  }
  std::vector<Slot> slots() const override { return {{"sum", Slot::Per::kElement, initial_}}; }
  bool elementwise() const override { return true; }
  bool scales_gradient() const override { return true; }
  bool idle_without_gradient() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k)
      adagrad_row(b.weight(k), b.slot(0, k), b.grad(k), b.width, static_cast<Real>(b.lr), static_cast<Real>(eps_), b.grad_scale);
  }

 private:
  double eps_ = 1e-10;
  double initial_ = 0;
};

ROWAN_REGISTER_OPTIMIZER("adagrad", Adagrad);

}  // namespace
}  // namespace rowan

// smart_decay_adam: Caffe2's and OneFlow's SmartDecaySparseAdam, which makes up a row's missed steps when the row is next updated,
// roughly.
//
//   k = t - the step that last touched the row, 1 at the first touch
//   missed = m * beta1 (1 - beta1^(k-1)) / (1 - beta1)
//   m = beta1^k m + (1 - beta1) g          v = beta2^k v + (1 - beta2) g^2
//   w -= lr * (m + missed) / (sqrt(v) + eps)
//
// No bias correction. It is not what a dense Adam does: the missed steps are divided by the new v, with today's learning rate, and
// the forward pass reads the row without them; untouched = exact (adam, adamw) is the exact form. State: m (exp_avg), v
// (exp_avg_sq) per element, last_touch per row. Formula as in OneFlow's one_embedding kernels.
#include <algorithm>
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

struct SmartScalars {
  Real power1, power2, one_minus_beta1, one_minus_beta2, missed, lr, eps;
};

ROWAN_VECTORIZED void smart_row(Real* __restrict w, Real* __restrict m, Real* __restrict v, const Real* __restrict g, int64_t n,
                                const SmartScalars s) {
  for (int64_t j = 0; j < n; ++j) {
    const Real missed = s.missed * m[j];
    m[j] = s.power1 * m[j] + s.one_minus_beta1 * g[j];
    v[j] = s.power2 * v[j] + s.one_minus_beta2 * (g[j] * g[j]);
    w[j] -= s.lr * (m[j] + missed) / (std::sqrt(v[j]) + s.eps);
  }
}

class SmartDecayAdam final : public RowOptimizer {
 public:
  SmartDecayAdam() {
    axes_.untouched = "frozen";
    axes_.decay = "none";
  }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("beta1", beta1_, "decay of the mean of gradients", from_below(0, 1));
    v("beta2", beta2_, "decay of the mean of squared gradients", from_below(0, 1));
    v("eps", eps_, "keeps the denominator from 0", above(0));
  }
  void validate() const override {
    RowOptimizer::validate();
    ROWAN_CHECK(
        axes_.untouched == "frozen", "[smart_decay_adam] untouched = \"", axes_.untouched,
        "\": this rule makes up missed steps in its own way, in rows that are left alone; use adam or adamw for the exact one");
  }
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  bool wants_last_touch() const override { return true; }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      const auto now = static_cast<int32_t>(b.step_scalars->step);
      int32_t& last = *b.last_touch(k);
      const double gap = last == 0 ? 1 : std::max(1, now - last);  // 0: another occurrence in the same step, which missed none
      last = now;
      smart_row(b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width,
                {static_cast<Real>(std::pow(beta1_, gap)), static_cast<Real>(std::pow(beta2_, gap)), static_cast<Real>(1 - beta1_),
                 static_cast<Real>(1 - beta2_), static_cast<Real>(beta1_ * (1 - std::pow(beta1_, gap - 1)) / (1 - beta1_)),
                 static_cast<Real>(b.lr), static_cast<Real>(eps_)});
    }
  }

 private:
  double beta1_ = 0.9;
  double beta2_ = 0.999;
  double eps_ = 1e-5;
};

ROWAN_REGISTER_OPTIMIZER("smart_decay_adam", SmartDecayAdam);

}  // namespace
}  // namespace rowan

// my_row_rms: a rule of our own, in one file. One step size per row, from the running mean of its squared gradient:
//
//   v = beta * v + (1 - beta) * mean_j(g_j^2)        one number a row
//   w_j -= lr * g_j / (sqrt(v / (1 - beta^t)) + eps)
//
// Nothing else is needed: state, checkpoints, threads, repeated ids and clipping are the driver's.
#include <cmath>

#include "optim/row_optimizer.h"

namespace {

class MyRowRms final : public rowan::RowOptimizer {
 public:
  MyRowRms() {
    axes_.untouched = "frozen";  // rows without a gradient keep weight and state
    axes_.counter = "row";       // t is the number of updates that this row has had
  }

  void visit(rowan::FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("beta", beta_, "decay of the running mean", rowan::from_below(0, 1));
    v("eps", eps_, "added to the root", rowan::above(0));
  }

  std::vector<rowan::Slot> slots() const override { return {{"mean_square", rowan::Slot::Per::kRow}}; }

  void fill_scalars(rowan::StepScalars& s) const override { s.c[0] = 1 - std::pow(beta_, static_cast<double>(s.step)); }

  void update_rows(const rowan::RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) {
      rowan::Real* w = b.weight(k);
      const rowan::Real* g = b.grad(k);
      double square = 0;
      for (int64_t j = 0; j < b.width; ++j) square += static_cast<double>(g[j]) * static_cast<double>(g[j]);
      rowan::Real& v = *b.slot(0, k);
      v = static_cast<rowan::Real>(beta_ * static_cast<double>(v) + (1 - beta_) * square / static_cast<double>(b.width));
      const double step = b.lr / (std::sqrt(static_cast<double>(v) / b.scalars(k).c[0]) + eps_);
      for (int64_t j = 0; j < b.width; ++j) w[j] -= static_cast<rowan::Real>(step) * g[j];
    }
  }

 private:
  double beta_ = 0.99;
  double eps_ = 1e-8;
};
ROWAN_REGISTER_OPTIMIZER("my_row_rms", MyRowRms);

}  // namespace

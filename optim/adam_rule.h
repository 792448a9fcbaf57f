// AdamRule: what adam, adamw, sparse_adam and the presets share.
//
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2         c1 = 1 - beta1^t    c2 = 1 - beta2^t
//   eps_mode standard   w -= lr * (m / c1) / (sqrt(v / c2) + eps)            Kingma and Ba, ICLR 2015, algorithm 1
//            hat        w -= lr * sqrt(c2) / c1 * m / (sqrt(v) + eps)        the same paper, end of section 2: eps is eps-hat,
//                                                                            1/sqrt(c2) times larger (31.6 x at t = 1, beta2 .999)
//            inside     w -= lr * (m / c1) / sqrt(v / c2 + eps)
// State: m (exp_avg), v (exp_avg_sq) per element.
#pragma once

#include "optim/row_optimizer.h"

namespace rowan {

class AdamRule : public RowOptimizer {
 public:
  void visit(FieldVisitor& v) override;
  std::vector<Slot> slots() const override { return {{"exp_avg"}, {"exp_avg_sq"}}; }
  bool elementwise() const override { return true; }
  bool scales_gradient() const override { return true; }
  bool shrinks_weights() const override { return true; }
  void fill_scalars(StepScalars& s) const override;
  void update_rows(const RowBlock& block) const override;
  bool can_jump() const override { return true; }
  bool jump(const RowJump& row) const override;

 protected:
  double beta1_ = 0.9;
  double beta2_ = 0.999;
  double eps_ = 1e-8;
  std::string eps_mode_ = "standard";
};

}  // namespace rowan

// AdamLike: settings and per-step numbers of rules that keep Adam's moments but form their step in another way.
//
//   m = beta1 m + (1 - beta1) g      c1 = 1 - beta1^t, c2 = 1 - beta2^t
// Scalars: c[0] = lr / c1, c[1] = 1 / sqrt(c2), c[2] = 1 / c1.
#pragma once

#include <cmath>

#include "optim/row_optimizer.h"
#include "optim/running_mean.h"

namespace rowan {

class AdamLike : public RowOptimizer {
 public:
  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("beta1", beta1_, "decay of the mean of gradients", from_below(0, 1));
    v("beta2", beta2_, "decay of the mean of squared gradients", from_below(0, 1));
    v("eps", eps_, "added outside the root, keeps the denominator from 0", at_least(0));
  }

  void fill_scalars(StepScalars& s) const override {
    const double t = static_cast<double>(s.step), c1 = 1 - std::pow(beta1_, t), c2 = 1 - std::pow(beta2_, t);
    s.c[0] = s.lr / c1;
    s.c[1] = 1 / std::sqrt(c2);
    s.c[2] = 1 / c1;
  }

 protected:
  struct Scalars {
    RunningMean mean;
    Real beta2, one_minus_beta2, step_size, root_factor, eps;
  };
  Scalars scalars_of(const StepScalars& s) const {
    return {RunningMean(beta1_),       static_cast<Real>(beta2_), static_cast<Real>(1 - beta2_),
            static_cast<Real>(s.c[0]), static_cast<Real>(s.c[1]), static_cast<Real>(eps_)};
  }

  double beta1_ = 0.9;
  double beta2_ = 0.999;
  double eps_ = 1e-8;
};

}  // namespace rowan

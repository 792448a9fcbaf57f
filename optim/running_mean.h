// RunningMean: the first moment of the Adam family, m = beta m + (1 - beta) g, taken from the end that it lies nearer to:
//
//   beta >= 1/2   m + (1 - beta) (g - m)          beta < 1/2   g - beta (g - m)
//
// as torch.lerp does. From m, a mean that forgets at once (beta = 0) would lose a gradient that is small beside the one before.
#pragma once

#include "core/kernels/vectorize.h"
#include "core/real.h"

namespace rowan {

class RunningMean {
 public:
  explicit RunningMean(double beta) : from_gradient_(beta < 0.5), factor_(static_cast<Real>(from_gradient_ ? -beta : 1 - beta)) {}

  ROWAN_INLINE Real operator()(Real m, Real g) const { return (from_gradient_ ? g : m) + factor_ * (g - m); }

  // What a gradient of zero leaves of m, as a factor: beta, as Real holds it.
  double kept() const { return from_gradient_ ? -static_cast<double>(factor_) : 1 - static_cast<double>(factor_); }

 private:
  bool from_gradient_;
  Real factor_;
};

}  // namespace rowan

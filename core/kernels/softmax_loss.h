// Cross-entropy of one row of logits, and its gradient in their place. Single-threaded, no autograd.
#pragma once

#include <cstdint>

#include "core/real.h"

namespace rowan {

struct RowLoss {
  double loss;         // -log softmax(z)[target]
  double log_sum_exp;  // log sum_j e^(z_j)
};

// z (V) -> e^(z - max), or with `gradient`, (softmax(z) - onehot(target)) * scale. target in [0,V). The largest logit is
// subtracted first, and the sum is taken to better than 1e-6 of itself in float, so that any finite logits give a finite loss
// unless it is beyond double. A logit that is not finite gives a loss that is not finite, wherever it stands.
RowLoss softmax_loss(Real* z, int64_t v, int32_t target, double scale, bool gradient);

}  // namespace rowan

// momentum: sgd with momentum 0.9 (Polyak's heavy ball): b = momentum b + g, w -= lr b.
// Polyak, "Some methods of speeding up the convergence of iteration methods", 1964. State and details: optim/sgd_rule.h.
#include "optim/sgd_rule.h"

namespace rowan {
namespace {

class Momentum final : public SgdRule {
 public:
  Momentum() { momentum_ = 0.9; }
};

ROWAN_REGISTER_OPTIMIZER("momentum", Momentum);

}  // namespace
}  // namespace rowan

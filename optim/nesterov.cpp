// nesterov: sgd with momentum 0.9 that looks ahead: b = momentum b + g, w -= lr (g + momentum b).
// Nesterov, 1983, as Sutskever et al., ICML 2013, put it. State and details: optim/sgd_rule.h.
#include "optim/sgd_rule.h"

namespace rowan {
namespace {

class Nesterov final : public SgdRule {
 public:
  Nesterov() {
    momentum_ = 0.9;
    nesterov_ = true;
  }
};

ROWAN_REGISTER_OPTIMIZER("nesterov", Nesterov);

}  // namespace
}  // namespace rowan

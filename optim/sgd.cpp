// sgd: stochastic gradient descent, with momentum if asked for, as torch.optim.SGD. Formula and state: optim/sgd_rule.h.
#include "optim/sgd_rule.h"

namespace rowan {
namespace {

class Sgd final : public SgdRule {};

ROWAN_REGISTER_OPTIMIZER("sgd", Sgd);

}  // namespace
}  // namespace rowan

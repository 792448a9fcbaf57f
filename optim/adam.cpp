// adam: Adam as torch.optim.Adam; weight decay, if any, goes through the gradient (decay = coupled). Formula and state:
// optim/adam_rule.h. Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015.
#include "optim/adam_rule.h"

namespace rowan {
namespace {

class Adam final : public AdamRule {
 public:
  Adam() { axes_.decay = "coupled"; }
};

ROWAN_REGISTER_OPTIMIZER("adam", Adam);

}  // namespace
}  // namespace rowan

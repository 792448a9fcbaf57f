// adamw: Adam with decoupled weight decay, as torch.optim.AdamW.
//
//   w = (1 - lr * weight_decay) w,  then Adam's update with eps outside the root (formula and state: optim/adam_rule.h)
//
// On a row-sparse table the default, untouched = dense, moves every row at every step exactly as a dense table would; with
// untouched = frozen only the rows of the batch are decayed and moved.
// Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019.
#include "optim/adam_rule.h"

namespace rowan {
namespace {

class AdamW final : public AdamRule {
 public:
  AdamW() { weight_decay_ = 0.01; }
};

ROWAN_REGISTER_OPTIMIZER("adamw", AdamW);

}  // namespace
}  // namespace rowan

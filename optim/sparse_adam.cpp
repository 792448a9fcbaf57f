// sparse_adam: Adam on the rows that a batch touched, as torch.optim.SparseAdam.
//
//   moments and weights of touched rows only; one step counter for the table, advanced whenever there is a gradient, even of no
//   rows; repeated ids summed before squaring; eps-hat form; no weight decay (formula and state: optim/adam_rule.h)
//
// It differs from adamw on the same table in more than speed: a row that is not read keeps its moments and stops moving. Not for
// dense tables, the tied one included: prepare() refuses them.
#include "optim/adam_rule.h"

namespace rowan {
namespace {

class SparseAdam final : public AdamRule {
 public:
  SparseAdam() {
    axes_.untouched = "frozen";
    axes_.decay = "none";
    eps_mode_ = "hat";
  }
  bool sparse_only() const override { return true; }
  void validate() const override {
    AdamRule::validate();
    ROWAN_CHECK(axes_.untouched == "frozen", "[", rule(), "] untouched = \"", axes_.untouched,
                "\": this rule updates touched rows only; ", "use adamw for a table in which every row moves");
  }
};

using PytorchSparseAdam = SparseAdam;  // under the name of its origin, beside the other presets

ROWAN_REGISTER_OPTIMIZER("sparse_adam", SparseAdam);
ROWAN_REGISTER_OPTIMIZER("pytorch_sparse_adam", PytorchSparseAdam);

}  // namespace
}  // namespace rowan

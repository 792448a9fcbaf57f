// Presets: the embedding optimizers of other libraries by name, as settings of the rules here, so that published numbers can be
// read again. Each says what it copies and what, if anything, it leaves out. Any field can still be set.
// pytorch_sparse_adam is a name of the rule sparse_adam, and stands with it.
#include "optim/adam_rule.h"
#include "optim/rowwise_adagrad.h"

namespace rowan {
namespace {

// tensorflow_addons LazyAdam: touched rows, global step, eps-hat of 1e-7.
class TfLazyAdam final : public AdamRule {
 public:
  TfLazyAdam() {
    axes_.untouched = "frozen";
    axes_.decay = "none";
    eps_mode_ = "hat";
    eps_ = 1e-7;
  }
};

// FBGEMM ADAM: touched rows, global iteration, eps outside the corrected root, decoupled decay of touched rows.
class FbgemmAdam final : public AdamRule {
 public:
  FbgemmAdam() {
    lr_ = 0.01;
    axes_.untouched = "frozen";
  }
};

// FBGEMM EXACT_ROWWISE_ADAGRAD with L2 weight decay: the decay enters the sum of squares and the step. Without max_norm.
class FbgemmRowwiseAdagrad final : public RowwiseAdagradRule {
 public:
  FbgemmRowwiseAdagrad() { axes_.untouched = "frozen"; }
};

// DGL SparseAdam: a step count for each row, and the mean over repeated ids.
class DglSparseAdam final : public AdamRule {
 public:
  DglSparseAdam() {
    axes_.untouched = "frozen";
    axes_.counter = "row";
    axes_.duplicates = "mean";
    axes_.decay = "none";
  }
};

// MXNet Adam with lazy_update: eps-hat, weight decay through the gradient of touched rows.
class MxnetLazyAdam final : public AdamRule {
 public:
  MxnetLazyAdam() {
    axes_.untouched = "frozen";
    axes_.decay = "coupled";
    eps_mode_ = "hat";
  }
};

ROWAN_REGISTER_OPTIMIZER("tf_lazy_adam", TfLazyAdam);
ROWAN_REGISTER_OPTIMIZER("fbgemm_adam", FbgemmAdam);
ROWAN_REGISTER_OPTIMIZER("fbgemm_rowwise_adagrad", FbgemmRowwiseAdagrad);
ROWAN_REGISTER_OPTIMIZER("dgl_sparse_adam", DglSparseAdam);
ROWAN_REGISTER_OPTIMIZER("mxnet_lazy_adam", MxnetLazyAdam);

}  // namespace
}  // namespace rowan

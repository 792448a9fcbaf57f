// SgdRule: what sgd, momentum and nesterov share.
//
//   g' = g + weight_decay * w                                       (decay = coupled, the default here)
//   first update: b = g'; later: b = momentum * b + (1 - dampening) * g'
//   w -= lr * (g' + momentum * b)  with nesterov, else  lr * b;  without momentum  lr * g'
//
// State: b (momentum_buffer) per element; none without momentum. "First" is the parameter's first update, or, with counter = row,
// the row's. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013, in the form that
// PyTorch uses (lr outside the buffer).
#pragma once

#include "optim/row_optimizer.h"

namespace rowan {

class SgdRule : public RowOptimizer {
 public:
  SgdRule() { axes_.decay = "coupled"; }
  void visit(FieldVisitor& v) override;
  void validate() const override;
  std::vector<Slot> slots() const override;
  bool elementwise() const override { return true; }
  bool scales_gradient() const override { return true; }
  bool idle_without_gradient() const override { return momentum_ == 0; }
  void fill_scalars(StepScalars& s) const override;
  void update_rows(const RowBlock& b) const override;

 protected:
  double momentum_ = 0;
  double dampening_ = 0;
  bool nesterov_ = false;
};

}  // namespace rowan

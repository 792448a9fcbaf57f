// RowwiseAdagradRule: Adagrad with one sum of squares for a row.
//
//   h += mean over the row of g^2        w -= lr * g / (sqrt(h) + eps)
//
// State: h (sum) per row: 4 bytes a row instead of 4 D. A zero gradient changes nothing, so a row-sparse table is exactly a dense
// one. Mudigere et al., "Software-hardware co-design for fast and scalable training of deep learning recommendation models", ISCA
// 2022.
#pragma once

#include "optim/row_optimizer.h"

namespace rowan {

class RowwiseAdagradRule : public RowOptimizer {
 public:
  RowwiseAdagradRule();
  void visit(FieldVisitor& v) override;
  std::vector<Slot> slots() const override { return {{"sum", Slot::Per::kRow}}; }
  bool idle_without_gradient() const override { return true; }
  void update_rows(const RowBlock& b) const override;

 protected:
  double eps_ = 1e-8;
};

}  // namespace rowan

// Parameter: a trained tensor. Its gradient lives here from backward() until the optimizer consumes and clears it.
#pragma once

#include <string>

#include "core/variable.h"

namespace rowan {

struct Parameter {
  Variable var;
  // False where another parameter has the same storage and takes the weight decay for both.
  bool decays = true;

  Parameter() = default;
  explicit Parameter(const Tensor& value, GradKind kind = GradKind::kDense) : var(Variable::leaf(value, kind)) {}

  bool present() const { return !var.empty(); }  // an optional parameter (a bias) may be absent
  Tensor& value() { return var.value(); }
  const Tensor& value() const { return var.value(); }
  const Shape& shape() const { return var.shape(); }
  GradKind kind() const { return var.grad_kind(); }
  Tensor& grad() { return var.grad(); }
  RowSparseGrad& row_grad() { return var.row_grad(); }
  bool has_grad() { return kind() == GradKind::kDense ? !grad().empty() : !row_grad().empty(); }
};

}  // namespace rowan

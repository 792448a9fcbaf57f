#include <cmath>

#include "optim/row_math.h"
#include "optim/rowwise_adagrad.h"

namespace rowan {

RowwiseAdagradRule::RowwiseAdagradRule() {
  lr_ = 1e-2;
  axes_.decay = "coupled";
}

void RowwiseAdagradRule::visit(FieldVisitor& v) {
  RowOptimizer::visit(v);
  v("eps", eps_, "keeps the denominator from 0", at_least(0));
}

void RowwiseAdagradRule::update_rows(const RowBlock& b) const {
  for (int64_t k = 0; k < b.rows; ++k) {
    const double square = sum_squares(b.grad(k), b.width) / static_cast<double>(b.width);
    if (square == 0) continue;
    Real& h = *b.slot(0, k);
    h += static_cast<Real>(square);
    const double denominator = std::sqrt(static_cast<double>(h)) + eps_;
    if (denominator == 0) continue;  // no gradient so far, or only such whose squares are 0
    add_scaled(b.grad(k), b.width, static_cast<Real>(-b.lr / denominator), b.weight(k));
  }
}

}  // namespace rowan

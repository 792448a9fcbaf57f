// sm3: Adagrad whose sums are bounded by one number a row and one a column.
//
//   n_ij = min(r_i, c_j) + g_ij^2      r_i = max over the row of n      c_j = max(c_j, max over the step's rows of n)
//   w -= lr * g / (sqrt(n) + eps)
//
// State: r (row) per row, c (column) per column; n is never below Adagrad's sum of squares. A zero gradient leaves n, and with it r
// and c, no larger than they were and moves no weight; r may come closer to its bound, as in the paper. Columns are shared, so rows
// can't lag behind. Anil, Gupta, Koren, Singer, "Memory-efficient adaptive optimization", NeurIPS 2019, SM3-II with rows and
// columns as the cover.
#include <algorithm>
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_math.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void largest_sums(const Real* __restrict g, const Real* __restrict c, int64_t n, Real r,
                                   double* __restrict columns) {
  for (int64_t j = 0; j < n; ++j) {
    const double sum = (r < c[j] ? r : c[j]) + g[j] * g[j];
    columns[j] = sum > columns[j] ? sum : columns[j];
  }
}

class Sm3 final : public RowOptimizer {
 public:
  Sm3() {
    lr_ = 0.1;
    axes_.decay = "coupled";
  }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("eps", eps_, "keeps the denominator from 0", at_least(0));
  }
  std::vector<Slot> slots() const override { return {{"row", Slot::Per::kRow}, {"column", Slot::Per::kColumn}}; }
  ColumnReduce column_reduce() const override { return ColumnReduce::kMax; }
  bool columns_before_update() const override { return false; }  // n is made from the columns of the step before

  void reduce_rows(const RowBlock& b, std::span<double> columns) const override {
    for (int64_t k = 0; k < b.rows; ++k) largest_sums(b.grad(k), b.slot(1, k), b.width, *b.slot(0, k), columns.data());
  }

  void finish_columns(std::span<const double> columns, int64_t, const RowBlock& b) const override {
    for (size_t j = 0; j < columns.size(); ++j) b.slot(1, 0)[j] = std::max(b.slot(1, 0)[j], static_cast<Real>(columns[j]));
  }

  void update_rows(const RowBlock& b) const override {
    for (int64_t k = 0; k < b.rows; ++k) row(b.weight(k), b.slot(0, k), b.slot(1, k), b.grad(k), b.width, static_cast<Real>(b.lr));
  }

 private:
  void row(Real* w, Real* r, const Real* c, const Real* g, int64_t n, Real lr) const {
    Real largest = 0;
    for (int64_t j = 0; j < n; ++j) {
      const Real sum = std::min(*r, c[j]) + g[j] * g[j];
      largest = std::max(largest, sum);
      w[j] -= quotient(lr * g[j], std::sqrt(sum) + static_cast<Real>(eps_));
    }
    *r = largest;
  }

  double eps_ = 1e-10;
};

ROWAN_REGISTER_OPTIMIZER("sm3", Sm3);

}  // namespace
}  // namespace rowan

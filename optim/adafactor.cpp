// adafactor: Adam's second moment, factored into one number a row and one a column; no first moment.
//
//   r_i = beta r_i + (1 - beta) mean over the row of (g^2 + eps1)        beta = 1 - t^-decay_rate
//   c_j = beta c_j + (1 - beta) mean over the step's rows of (g^2 + eps1)
//   u = g / sqrt(r_i c_j / mean of c)       u is scaled down to a root mean square of at most clip_threshold, row by row
//   w -= lr * u
//
// State: r (row) per row, c (column) per column. On a dense table mean(c) = mean(r), the paper's normalizer; c is used because it
// has no rows that lag behind. With untouched = frozen the step's rows are the touched ones. Two differences from the paper:
// clipping of u is per row, not per matrix, and lr is given, not relative to the weights. A vector is one row, whose r c / mean(c)
// is c. Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018.
#include <algorithm>
#include <cmath>

#include "core/kernels/vectorize.h"
#include "optim/row_math.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

ROWAN_VECTORIZED void add_squares(const Real* __restrict g, int64_t n, double eps, double* __restrict columns) {
  for (int64_t j = 0; j < n; ++j) columns[j] += static_cast<double>(g[j]) * static_cast<double>(g[j]) + eps;
}

ROWAN_VECTORIZED void factored(const Real* __restrict g, const Real* __restrict column, int64_t n, Real row_factor,
                               Real* __restrict u) {
  for (int64_t j = 0; j < n; ++j) u[j] = g[j] / (row_factor * std::sqrt(column[j]));
}

class Adafactor final : public RowOptimizer {
 public:
  Adafactor() { lr_ = 1e-2; }

  void visit(FieldVisitor& v) override {
    RowOptimizer::visit(v);
    v("decay_rate", decay_rate_, "the moments' decay at step t is 1 - t^-decay_rate", between(0, 1));
    v("clip_threshold", clip_threshold_, "largest root mean square of a row's update, before lr", above(0));
    v("eps", eps_, "added to squared gradients", above(0));
  }
  std::vector<Slot> slots() const override { return {{"row", Slot::Per::kRow}, {"column", Slot::Per::kColumn}}; }
  ColumnReduce column_reduce() const override { return ColumnReduce::kSum; }

  void fill_scalars(StepScalars& s) const override { s.c[0] = 1 - std::pow(static_cast<double>(s.step), -decay_rate_); }

  void reduce_rows(const RowBlock& b, std::span<double> columns) const override {
    for (int64_t k = 0; k < b.rows; ++k) add_squares(b.grad(k), b.width, eps_, columns.data());
  }

  void finish_columns(std::span<const double> columns, int64_t rows, const RowBlock& b) const override {
    Real* column = b.slot(1, 0);
    const double beta = b.step_scalars->c[0];
    for (size_t j = 0; j < columns.size(); ++j)
      column[j] = static_cast<Real>(beta * column[j] + (1 - beta) * columns[j] / static_cast<double>(rows));
  }

  void update_rows(const RowBlock& b) const override {
    double mean = 0;
    for (int64_t j = 0; j < b.width; ++j) mean += b.slot(1, 0)[j];
    mean /= static_cast<double>(std::max<int64_t>(1, b.width));
    std::vector<Real> u(static_cast<size_t>(b.width));
    for (int64_t k = 0; k < b.rows; ++k) {
      const double width = static_cast<double>(b.width), beta = b.scalars(k).c[0];
      Real& r = *b.slot(0, k);
      r = static_cast<Real>(beta * r + (1 - beta) * (sum_squares(b.grad(k), b.width) / width + eps_));
      factored(b.grad(k), b.slot(1, k), b.width, static_cast<Real>(std::sqrt(r / mean)), u.data());
      const double rms = std::sqrt(sum_squares(u.data(), b.width) / width);
      add_scaled(u.data(), b.width, static_cast<Real>(-b.lr / std::max(1.0, rms / clip_threshold_)), b.weight(k));
    }
  }

 private:
  double decay_rate_ = 0.8;
  double clip_threshold_ = 1;
  double eps_ = 1e-30;
};

ROWAN_REGISTER_OPTIMIZER("adafactor", Adafactor);

}  // namespace
}  // namespace rowan

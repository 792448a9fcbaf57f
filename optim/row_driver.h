// RowDriver: one update of one parameter by a RowOptimizer. Internal to optim/.
//
// Work is cut into pieces (what one thread takes) and pieces into tiles (what one call of update_rows() sees) by sizes alone. A
// tile is small enough that its gradient, copied to be scaled or decayed, and its weights stay in cache between the passes.
#pragma once

#include "optim/row_optimizer.h"

namespace rowan {

class RowDriver {
 public:
  RowDriver(const RowOptimizer& rule, RowOptimizer::State& state, Parameter& p, const StepInfo& info);

  void dense(const Tensor& grad);           // every row has a gradient
  void touched(const RowSparseGrad& grad);  // only these rows are updated; grad is coalesced
  void sweep(const RowSparseGrad& grad);    // all rows are updated, those without a gradient with zeros; grad is coalesced

 private:
  // Consecutive rows from `first`, or the rows of `ids`; gradients lie one after the other.
  struct Tile {
    const int32_t* ids = nullptr;
    int64_t first = 0;
    int64_t rows = 0;
    int64_t width = 0;
    const Real* grads = nullptr;
  };

  bool rewrites_gradient() const { return scale_ != 1 || coupled_ != 0 || mean_; }
  int64_t rows_of(int64_t elements) const { return std::max<int64_t>(1, elements / std::max<int64_t>(1, width_)); }
  void dense_rows(const Real* grad, int64_t rows, int64_t width);
  void load_gradient(const RowBlock& b, const Real* from, const int32_t* counts, Real* to) const;
  RowBlock block_of(const Tile& tile) const;
  void update(RowBlock b, const Tile& tile) const;
  std::vector<StepScalars> count_rows(const Tile& tile) const;

  const RowOptimizer& rule_;
  RowOptimizer::State& state_;
  Real* weights_;
  int64_t rows_, width_;
  StepScalars scalars_;
  Real scale_ = 1;    // of the gradient
  Real coupled_ = 0;  // weight decay through the gradient
  Real shrink_ = 1;   // decoupled weight decay, as a factor of the weights
  double block_decay_ = 0;
  bool mean_ = false;  // duplicates = mean
  bool row_counter_ = false;
  bool flat_ = false;  // rows may be joined
};

}  // namespace rowan

// RowDriver: one update of one parameter by a RowOptimizer. Internal to optim/.
//
// Work is cut into pieces (what one thread takes) and pieces into tiles (what one call of update_rows() sees) by sizes alone. A
// tile is small enough that its gradient, copied to be scaled, clipped or decayed, and its weights stay in cache between the
// passes.
#pragma once

#include <map>

#include "optim/row_optimizer.h"

namespace rowan {

class RowDriver {
 public:
  RowDriver(const RowOptimizer& rule, RowState& state, Parameter& p, const StepInfo& info);

  void dense(const Tensor& grad);  // every row has a gradient
  // The same piece by piece, from any threads, for rules that reduce no columns.
  int64_t dense_pieces() const;
  void dense_piece(const Tensor& grad, int64_t piece) const;
  void touched(const RowSparseGrad& grad);  // only these rows are updated; grad is coalesced
  void sweep(const RowSparseGrad& grad);    // all rows are updated, those without a gradient with zeros; grad is coalesced
  // As touched(), from the gradients of single occurrences, which are summed in token order on the way: the coalesced gradient is
  // never written to memory, and the bits are the same.
  void fused(const Occurrences& grad);
  void sequential(const Occurrences& grad);  // one update an occurrence

 private:
  // Consecutive rows from `first`, or the rows of `ids`. counts: occurrences of each row, or nullptr where each has one.
  struct Tile {
    const int32_t* ids = nullptr;
    const int32_t* counts = nullptr;
    int64_t first = 0;
    int64_t rows = 0;
    int64_t width = 0;
  };

  // A copy of the gradient is made for what the rule does not do as it reads it.
  bool rewrites_gradient() const { return (scale_ != 1 && !rule_scales_) || coupled_ != 0 || mean_ || clip_ != Clip::kNone; }
  int64_t rows_of(int64_t elements) const { return std::max<int64_t>(1, elements / std::max<int64_t>(1, width_)); }
  int64_t dense_length() const { return flat_ ? rows_ * width_ : rows_; }  // elements as rows of one, or rows
  int64_t dense_width() const { return flat_ ? 1 : width_; }
  int64_t dense_piece_rows() const;
  void dense_rows(const Real* grad, int64_t begin, int64_t end, double* columns) const;
  template <class Pass>
  void run(int64_t rows, const Pass& pass);
  void touched_pass(const RowSparseGrad& grad);
  void sweep_pass(const RowSparseGrad& grad);
  void fused_pass(const Occurrences& grad);
  void finish_columns(int64_t rows);
  int64_t piece_rows() const;
  double* columns_of(int64_t first_row) {  // of the piece that begins there
    return reducing_ ? partial_.data() + first_row / piece_rows() * width_ : nullptr;
  }
  void update(const Tile& tile, const Real* grad, Real* scratch, double* columns) const;
  void prefetch(const Tile& tile) const;
  void gather_tile(const Occurrences& o, const Tile& tile, int64_t first, const std::map<int64_t, Tensor>& long_sums,
                   Real* out) const;
  RowBlock block_of(const Tile& tile) const;
  void rewrite_gradient(const RowBlock& b, const int32_t* counts, const Real* from, Real* to, Real coupled) const;
  void clip_row(const RowBlock& b, int64_t k, int32_t count, Real* g) const;
  void shrink(RowBlock& b) const;
  std::vector<StepScalars> count_rows(const Tile& tile) const;

  enum class Clip { kNone, kValue, kRowNorm, kCowClip };

  const RowOptimizer& rule_;
  RowState& state_;
  Real* weights_;
  int64_t rows_, width_;
  StepScalars scalars_;
  Real scale_ = 1;    // of the gradient
  Real coupled_ = 0;  // weight decay through the gradient
  Real shrink_ = 1;   // decoupled weight decay, as a factor of the weights
  double block_decay_ = 0;
  Clip clip_ = Clip::kNone;
  bool mean_ = false;         // duplicates = mean
  bool rule_scales_ = false;  // the rule multiplies by scale_
  bool row_counter_ = false;
  bool flat_ = false;            // rows may be joined
  bool reducing_ = false;        // this pass reduces columns and updates nothing
  std::vector<double> partial_;  // (pieces, D) columns reduced by each piece
};

}  // namespace rowan

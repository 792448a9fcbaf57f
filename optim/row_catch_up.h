// RowCatchUp: brings rows that missed steps to where their parameter stands. Internal to optim/.
//
// A row that stands at step p of a parameter at step t gets the steps p+1..t with a gradient of zero: repeated (replay), jumped
// over (closed), or, where rows are frozen and only decay is deferred, the product of the decay factors.
#pragma once

#include <span>

#include "optim/row_optimizer.h"

namespace rowan {

// The record of a step with learning rate lr, to be appended to `history`.
StepRecord make_record(const RowOptimizer& rule, const RowState& state, int64_t step, double lr);

// Two jumps in a row have not the last bits of one, so where rows jump, bringing them up to date is part of training only where
// training reads them: in a batch. For all other readers (evaluation, checkpoints, norms), whose coming must change nothing,
// read_ahead() moves the weights alone and keeps those from before; take_back() puts these in their place when training goes on. In
// between an embedding takes one more copy of the weights of its rows that lag behind.
class RowCatchUp {
 public:
  RowCatchUp(const RowOptimizer& rule, RowState& state, Parameter& p);

  void rows(std::span<const int32_t> ids);  // strictly increasing
  void all();                               // and forgets the history, which nobody needs any more
  void read_ahead();                        // all rows, for readers; nothing to do when they are ahead already
  void take_back();

  // Whether a row's steps are made up in jumps: the bits then depend on where the jumps begin.
  static bool jumps(const RowOptimizer& rule);

 private:
  void row(int64_t row, Real* zeros) const;
  void weights_ahead(int64_t row, Real* zeros) const;
  void replay(int64_t row, const StepRecord* first, int64_t count, Real* gradient) const;
  bool jump(int64_t row, const StepRecord* first, int64_t count) const;
  RowJump jump_of(int64_t row, const StepRecord* first, int64_t count) const;
  int64_t piece_rows() const;
  template <class RowOf>
  void run(int64_t count, const RowOf& row_of);

  const RowOptimizer& rule_;
  RowState& state_;
  Real* weights_;
  int64_t width_;
  bool decay_only_, closed_;
  Real coupled_ = 0;
  double block_decay_ = 0;
};

}  // namespace rowan

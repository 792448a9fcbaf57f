// RowState: what the driver keeps of one parameter, and what a checkpoint keeps of it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "optim/row_block.h"
#include "optim/update_report.h"

namespace rowan {

struct RowState {
  Shape shape;
  GradKind kind = GradKind::kDense;
  bool decays = true;  // Parameter::decays
  int64_t step = 0;    // updates of the parameter
  std::vector<Slot> layout;
  std::vector<Tensor> slots;                // one a slot; without storage for bytes
  std::vector<std::vector<uint8_t>> bytes;  // one a slot; empty for all others
  std::vector<int32_t> last_touch;          // (rows) the step that last touched each row, 0 for none; only for rules that want it
  std::vector<int32_t> row_steps;           // (rows) updates of each row; only with counter = row
  std::vector<int32_t> last_steps;          // (rows) the parameter's step that each row stands at; only where rows may lag behind

  // Steps (base, step], which some rows may have missed. Only where rows may lag behind.
  std::vector<StepRecord> history;
  double max_lr = 0;  // of the history
  int64_t base() const { return step - static_cast<int64_t>(history.size()); }
  bool tracks_rows() const { return !last_steps.empty(); }

  void remember(const StepRecord& r) {
    history.push_back(r);
    max_lr = std::max(max_lr, r.scalars.lr);
  }
  void forget() {
    history.clear();
    max_lr = 0;
  }

  // Rows that flush() brought up to date for readers, and their weights before that: RowCatchUp::read_ahead().
  std::vector<int32_t> ahead_rows;  // strictly increasing
  Tensor ahead_base;                // (rows ahead, D); no storage without any

  UpdateReport report;
  // Of catching up since the last update, for its report.
  int64_t caught_up = 0, caught_up_rows = 0;  // steps; rows that were written for them
  double caught_up_seconds = 0;               // outside of the update

  void add_slot(const Slot& slot);
  int64_t stride(size_t s) const;        // elements of a slot from one row to the next
  void point(RowBlock& b, int64_t row);  // b's state at that row
  int64_t bytes_a_row_moved() const;     // state read and written when a row is updated

  int64_t rows() const { return shape.rank() >= 2 ? shape.rows() : 1; }
  int64_t width() const { return shape.rank() >= 2 ? shape.back() : shape.size(); }
};

}  // namespace rowan

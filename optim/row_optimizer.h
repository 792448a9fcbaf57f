// RowOptimizer: a rule that works on one row at a time. The driver here owns the rule's state and runs it over all rows (dense
// gradient) or over the rows that a batch touched (row-sparse gradient), in parallel, with the same bits for any thread count.
//
// What every rule gets from the driver, so that it has to do none of it itself: gradients summed over repeated ids, scaled for
// clipping, weight decay, step counters, state in checkpoints. A rule is a loop over the elements of a row:
//
//   class SignSgd final : public RowOptimizer {
//     void update_rows(const RowBlock& b) const override {
//       for (int64_t k = 0; k < b.rows; ++k)
//         for (int64_t j = 0; j < b.width; ++j) b.weight(k)[j] -= static_cast<Real>(b.lr) * (b.grad(k)[j] > 0 ? 1 : -1);
//     }
//   };
//   ROWAN_REGISTER_OPTIMIZER("sign_sgd", SignSgd);
//
// Rows: a tensor of two dimensions has shape[0] rows; a vector is one row.
#pragma once

#include <map>
#include <span>

#include "optim/optimizer.h"
#include "optim/row_axes.h"
#include "optim/row_block.h"
#include "optim/row_state.h"

namespace rowan {

enum class ColumnReduce { kNone, kSum, kMax };

class RowOptimizer : public Optimizer {
 public:
  void visit(FieldVisitor& v) override;
  void validate() const override;
  void prepare(const std::string& name, Parameter& p) override;
  void visit_state(StateVisitor& v) override;
  int64_t state_bytes(const std::string& name) const override;
  std::optional<int64_t> planned_state_bytes(const Shape& shape, GradKind kind) const override;
  int64_t planned_flush_bytes(const Shape& shape, GradKind kind) const override;
  int64_t planned_copy_bytes(const Shape& shape, GradKind kind) const override;
  void step(const std::string& name, Parameter& p, const StepInfo& info) override;
  void catch_up(const std::string& name, Parameter& p, std::span<const int32_t> ids) override;
  void flush(const std::string& name, Parameter& p) override;
  void settings_changed() override;
  std::unique_ptr<PiecewiseStep> step_in_pieces(const std::string& name, Parameter& p, const StepInfo& info) override;
  UpdateReport last_update(const std::string& name) const override;  // Error for a parameter that was not prepared

  const RowAxes& axes() const { return axes_; }

  // --- what a rule says about itself
  virtual std::vector<Slot> slots() const { return {}; }  // at most kMaxSlots
  // An element's update depends on no other element of its row: neighbouring rows may then arrive as one long row.
  virtual bool elementwise() const { return false; }
  // A zero gradient changes neither weight nor state (weight decay aside): rows without one can be left out, whatever `untouched`.
  virtual bool idle_without_gradient() const { return false; }
  // The rule applies block.weight_decay itself, inside its formula.
  virtual bool decays_weights() const { return false; }
  // The rule multiplies every gradient element by block.grad_scale as it reads it, which saves the driver a pass.
  virtual bool scales_gradient() const { return false; }
  // The rule multiplies every weight by block.shrink, before anything else: the same.
  virtual bool shrinks_weights() const { return false; }
  virtual bool wants_last_touch() const { return false; }  // keeps RowBlock::last_touch; the rule writes it
  virtual void fill_scalars(StepScalars&) const {}
  virtual void update_rows(const RowBlock& block) const = 0;
  // catch_up = closed: makes up the missed steps of a row at once; false where the stated error bound does not hold, before
  // anything was changed: they are then repeated one by one. can_jump() says whether the rule has such a form at all.
  virtual bool can_jump() const { return idle_without_gradient(); }
  virtual bool jump(const RowJump&) const { return false; }

  // State per column is shared by all rows: a first pass over the rows reduces it, in a fixed order, before or after the update.
  virtual ColumnReduce column_reduce() const { return ColumnReduce::kNone; }
  virtual bool columns_before_update() const { return true; }
  virtual void reduce_rows(const RowBlock&, std::span<double>) const {}  // adds to, or takes the largest into, `columns` (D)
  virtual void finish_columns(std::span<const double>, int64_t, const RowBlock&) const {
  }  // reduced columns, rows that had a part in it

 protected:
  RowAxes axes_;

 private:
  RowState make_state(const Shape& shape, GradKind kind, bool decays) const;
  void check_kind(const std::string& name, const Parameter& p) const;
  RowState& state_of(const std::string& name, Parameter& p);
  void visit_slots(StateVisitor& v, const std::string& name, RowState& state);
  void visit_rows_ahead(StateVisitor& v, const std::string& name, RowState& state);
  void visit_steps(StateVisitor& v, const std::string& name, RowState& state);
  int64_t update_rows_of(RowState& state, Parameter& p, const StepInfo& info);
  static void begin_report(RowState& state);
  void end_report(RowState& state, int64_t gradient_rows, double seconds) const;
  class DenseStep;
  bool bring_up_to_date(RowState& state, Parameter& p, std::span<const int32_t> ids) const;
  void remember_step(RowState& state, std::span<const int32_t> ids, bool every_row, double lr) const;

  std::map<std::string, RowState> states_;
};

}  // namespace rowan

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

#include <array>
#include <map>
#include <span>

#include "optim/optimizer.h"
#include "optim/row_axes.h"

namespace rowan {

inline constexpr size_t kMaxSlots = 6;

// Named state of a rule.
struct Slot {
  enum class Per { kElement, kRow };
  std::string name;
  Per per = Per::kElement;
  double init = 0;
};

// What depends on the step alone, made once a step in double: bias corrections and the like. A rule fills c as it likes.
struct StepScalars {
  int64_t step = 1;  // how many updates this row counts, this one included: axis `counter`
  double lr = 0;     // with the schedule's factor
  std::array<double, 6> c{};
};

// The rows of one call. Pointers of row k are valid for `width` elements; slots per row for one.
struct RowBlock {
  int64_t rows = 0;
  int64_t width = 0;
  double lr = 0;
  double weight_decay = 0;  // for rules that decay by themselves (decays_weights()); the driver has applied it for the others

  Real* weight(int64_t k) const { return weights + row(k) * width; }
  const Real* grad(int64_t k) const { return grads + k * width; }  // final: summed, scaled, clipped
  Real* slot(size_t s, int64_t k) const { return slots[s] + row(k) * (per_element[s] ? width : 1); }
  const StepScalars& scalars(int64_t k) const { return row_scalars == nullptr ? *step_scalars : row_scalars[k]; }

  // Filled by the driver.
  const int32_t* ids = nullptr;  // rows of the table; nullptr: contiguous from row 0 of the pointers below
  Real* weights = nullptr;
  const Real* grads = nullptr;
  std::array<Real*, kMaxSlots> slots{};
  std::array<bool, kMaxSlots> per_element{};
  const StepScalars* step_scalars = nullptr;
  const StepScalars* row_scalars = nullptr;

 private:
  int64_t row(int64_t k) const { return ids == nullptr ? k : ids[k]; }
};

class RowOptimizer : public Optimizer {
 public:
  void visit(FieldVisitor& v) override;
  void validate() const override;
  void prepare(const std::string& name, Parameter& p) override;
  void visit_state(StateVisitor& v) override;
  int64_t state_bytes(const std::string& name) const override;
  void step(const std::string& name, Parameter& p, const StepInfo& info) override;

  const RowAxes& axes() const { return axes_; }

  // --- what a rule says about itself
  virtual std::vector<Slot> slots() const { return {}; }  // at most kMaxSlots
  // An element's update depends on no other element of its row: neighbouring rows may then arrive as one long row.
  virtual bool elementwise() const { return false; }
  // A zero gradient changes neither weight nor state (weight decay aside): rows without one can be left out, whatever `untouched`.
  virtual bool idle_without_gradient() const { return false; }
  // The rule applies block.weight_decay itself, inside its formula.
  virtual bool decays_weights() const { return false; }
  virtual void fill_scalars(StepScalars&) const {}
  virtual void update_rows(const RowBlock& block) const = 0;

 protected:
  RowAxes axes_;

 private:
  struct State {
    Shape shape;
    int64_t step = 0;
    std::vector<Tensor> slots;
    std::vector<bool> per_element;
    std::vector<int32_t> row_steps;  // (rows) updates each row has had; only with counter = row
  };
  friend class RowDriver;

  State& state_of(const std::string& name, Parameter& p);

  std::map<std::string, State> states_;
};

}  // namespace rowan

// Optimizer: a rule that turns gradients into new weights. Most rules work on one row at a time and derive from RowOptimizer
// (optim/row_optimizer.h), whose driver owns their state and runs them over dense and row-sparse gradients.
//
// A new rule is one file: optim/<rule>.cpp with its formula, its state and its source in the header comment, ending in
//   ROWAN_REGISTER_OPTIMIZER("name", Class);
// The contract test (tests/optim) covers every registered name without being asked. A program that links the library registers
// rules of its own in the same way.
//
// Nobody here looks for infinities and NaNs: whoever steps checks the gradients first (global_grad_norm() in optim/clip.h,
// OptimizerSet::clip_and_step() in optim/groups.h), so that a bad gradient changes no weight, no state and no counter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "core/registry.h"
#include "core/visit.h"
#include "optim/update_report.h"

namespace rowan {

struct StepInfo {
  int64_t step = 1;       // of the run, from 1. Rules count for themselves: a parameter without a gradient is not stepped
  double lr_factor = 1;   // the schedule's; a rule's learning rate is lr * lr_factor
  double grad_scale = 1;  // every gradient element is multiplied by this as it is read: global-norm clipping, folded in
};

// A step that can be cut into pieces, which touch nothing in common: those of many parameters then run as one parallel loop.
// The result does not depend on who takes which piece.
class PiecewiseStep {
 public:
  virtual ~PiecewiseStep() = default;
  virtual int64_t pieces() const = 0;
  virtual void run(int64_t piece) const = 0;  // from any thread
  virtual void finish(double seconds) = 0;    // after all pieces; seconds: what they took. Consumes the gradient
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  const std::string& rule() const { return rule_; }  // the name it was made by
  void set_rule(const std::string& name) { rule_ = name; }

  // Settings. A rule adds its own after calling this.
  virtual void visit(FieldVisitor& v);
  // Called once when all fields are set: checks their combination. Throws Error saying why one makes no sense.
  virtual void validate() const;

  // Makes the state for a parameter, so that it exists before the first step and before loading. Also the place to refuse one.
  virtual void prepare(const std::string& name, Parameter& p) = 0;
  // State of every prepared parameter, named "<parameter>/<slot>", with "<parameter>/step" the number of updates it has had.
  // Loading checks shapes and throws Error (kData) naming what does not fit.
  virtual void visit_state(StateVisitor& v) = 0;
  virtual int64_t state_bytes(const std::string& name) const = 0;

  // Consumes and clears p's gradient; without one it does nothing. The gradient must be finite.
  virtual void step(const std::string& name, Parameter& p, const StepInfo& info) = 0;

  // The same step as pieces, counted as begun; nullptr where the rule or the gradient does not allow it: step() is then called.
  virtual std::unique_ptr<PiecewiseStep> step_in_pieces(const std::string& name, Parameter& p, const StepInfo& info);
  // What the last step of a parameter did; all zeros from a rule that keeps no account.
  virtual UpdateReport last_update(const std::string& name) const;

  // Rows of a row-sparse parameter may lag behind (row_axes.h: untouched = exact, decay = deferred). catch_up() makes up what the
  // given rows have missed, and comes before they are read: before the forward pass. ids may repeat; an id outside the table is an
  // Error that changes nothing. flush() does it for all rows: before evaluation, checkpoints, export and reports of norms.
  virtual void catch_up(const std::string& name, Parameter& p, std::span<const int32_t> ids);
  virtual void flush(const std::string& name, Parameter& p);
  // Settings were read from a checkpoint: makes state anew for all prepared parameters, to be loaded next.
  virtual void settings_changed() {}

  // True when only rows that the batch touched may change: a tied (dense) table is then refused, since every row has a gradient.
  virtual bool sparse_only() const { return false; }
  // True when the update of a matrix depends on all of it at once, so that rows can't be updated alone: such a rule takes dense
  // matrices of hidden layers, and refuses vectors, tables and row-sparse gradients.
  virtual bool whole_matrix() const { return false; }

  // For plans. What state_bytes() will be for a parameter of that shape, when the rule can tell; what flush() takes besides for as
  // long as readers look, at most; the FLOPs of an update in matrix products, 0 where updating only moves memory.
  virtual std::optional<int64_t> planned_state_bytes(const Shape&, GradKind) const { return std::nullopt; }
  virtual int64_t planned_flush_bytes(const Shape&, GradKind) const { return 0; }
  virtual int64_t planned_copy_bytes(const Shape&, GradKind) const { return 0; }  // of state that saving copies first
  virtual double update_flops(const Shape&) const { return 0; }
  virtual int64_t update_scratch_bytes(const Shape&) const { return 0; }  // held for the time of an update

  double lr() const { return lr_; }
  double weight_decay() const { return weight_decay_; }
  // What acts on p: weight decay is for tensors of two dimensions unless decay_vectors asks for all.
  double weight_decay_of(const Parameter& p) const { return p.decays ? weight_decay_for(p.shape()) : 0.0; }
  double weight_decay_for(const Shape& shape) const { return decay_vectors_ || shape.rank() == 2 ? weight_decay_ : 0.0; }

 protected:
  double lr_ = 1e-3;
  double weight_decay_ = 0;
  bool decay_vectors_ = false;

 private:
  std::string rule_ = "optimizer";
};

std::unique_ptr<Optimizer> make_optimizer(const std::string& rule);  // Error naming the known rules, with the nearest as hint
std::vector<std::string> optimizer_rules();                          // sorted

#define ROWAN_REGISTER_OPTIMIZER(name, Class)             \
  [[maybe_unused]] static const bool registered_##Class = \
      ::rowan::Registry<::rowan::Optimizer>::instance().add(name, [] { return std::make_unique<Class>(); })

}  // namespace rowan

// Optimizer: a rule that turns gradients into new weights. RowOptimizer: a rule that works on one row at a time; its driver runs
// it over all rows (dense gradient) or over the touched ones (row-sparse gradient), in parallel.
//
// A new rule is one file: optim/<rule>.cpp with its formula, its state and its source in the header comment, ending in
//   ROWAN_REGISTER_OPTIMIZER("name", Class);
// The contract test (tests/optim) covers every registered name without being asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "core/registry.h"
#include "core/visit.h"

namespace rowan {

struct StepInfo {
  int64_t step = 1;       // global, from 1
  double lr_factor = 1;   // the schedule's; a rule's learning rate is lr * lr_factor
  double grad_scale = 1;  // every gradient element is multiplied by this as it is read: global-norm clipping, folded in
};

// Named state of a rule.
struct Slot {
  enum class Per { kElement, kRow };
  std::string name;
  Per per = Per::kElement;
  double init = 0;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  virtual void visit(FieldVisitor& v);  // lr and what every rule shares; a rule adds its own after calling this
  // Called once when all fields are set: checks their combination. Throws Error saying why one makes no sense.
  virtual void validate() const {}
  // State of every parameter stepped so far (or to be loaded), named "<parameter>/<slot>".
  virtual void visit_state(StateVisitor& v) = 0;
  // Makes the state for a parameter, so that it exists before the first step and before loading. Also the place to refuse one.
  virtual void prepare(const std::string& name, Parameter& p) = 0;
  virtual int64_t state_bytes(const std::string& name) const = 0;
  // Consumes and clears p's gradient; without one it does nothing.
  virtual void step(const std::string& name, Parameter& p, const StepInfo& info) = 0;
  // True when only rows that the batch touched may change: a tied (dense) table is then refused, since every row has a gradient.
  virtual bool sparse_only() const { return false; }

  double lr() const { return lr_; }

 protected:
  double lr_ = 1e-3;
};

std::unique_ptr<Optimizer> make_optimizer(const std::string& rule);  // Error naming the known rules and the nearest
std::vector<std::string> optimizer_rules();                          // sorted

#define ROWAN_REGISTER_OPTIMIZER(name, Class)                                              \
  [[maybe_unused]] static const bool registered_##Class = ::rowan::Registry<::rowan::Optimizer>::instance().add( \
      name, [] { return std::make_unique<Class>(); })

}  // namespace rowan

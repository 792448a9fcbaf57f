#include "optim/row_optimizer.h"

#include "optim/row_driver.h"

namespace rowan {

void RowOptimizer::visit(FieldVisitor& v) {
  Optimizer::visit(v);
  axes_.visit(v);
}

void RowOptimizer::validate() const {
  Optimizer::validate();
  axes_.validate(rule(), weight_decay());
}

void RowOptimizer::prepare(const std::string& name, Parameter& p) {
  state_of(name, p);
}

RowOptimizer::State& RowOptimizer::state_of(const std::string& name, Parameter& p) {
  const auto found = states_.find(name);
  if (found != states_.end()) {
    ROWAN_CHECK(found->second.shape == p.shape(), "[", rule(), "] parameter '", name, "' was prepared with shape ",
                found->second.shape, " and now has ", p.shape());
    return found->second;
  }
  ROWAN_CHECK(
      !sparse_only() || p.kind() == GradKind::kRowSparse, "[", rule(), "] parameter '", name, "' ", p.shape(),
      " is dense: every step gives every row a gradient, so there are no rows to leave alone. A token table is dense when ",
      "it is tied to the LM head, because softmax gives every row a gradient; use a dense rule such as adamw, or untie the head");
  const bool table = p.shape().rank() >= 2;
  const int64_t rows = table ? p.shape().rows() : 1;
  State state;
  state.shape = p.shape();
  const std::vector<Slot> wanted = slots();
  ROWAN_ASSERT(wanted.size() <= kMaxSlots);
  for (const Slot& slot : wanted) {
    const bool element = slot.per == Slot::Per::kElement;
    state.slots.push_back(Tensor::full(element ? p.shape() : Shape{rows}, static_cast<Real>(slot.init)));
    state.per_element.push_back(element);
  }
  if (axes_.counter == "row") state.row_steps.assign(static_cast<size_t>(rows), 0);
  return states_.emplace(name, std::move(state)).first->second;
}

void RowOptimizer::visit_state(StateVisitor& v) {
  const std::vector<Slot> names = slots();
  for (auto& [parameter, state] : states_) {
    v(parameter + "/step", state.step);
    for (size_t s = 0; s < names.size(); ++s) {
      const Shape shape = state.slots[s].shape();
      v(parameter + "/" + names[s].name, state.slots[s]);
      if (state.slots[s].shape() == shape) continue;
      const Shape loaded = state.slots[s].shape();
      state.slots[s] = Tensor::full(shape, static_cast<Real>(names[s].init));
      fail_data("[", rule(), "] state '", parameter, "/", names[s].name, "' has shape ", loaded, "; expected ", shape);
    }
    if (state.row_steps.empty()) continue;
    const size_t rows = state.row_steps.size();
    v(parameter + "/row_steps", state.row_steps);
    if (state.row_steps.size() == rows) continue;
    const size_t loaded = state.row_steps.size();
    state.row_steps.assign(rows, 0);
    fail_data("[", rule(), "] state '", parameter, "/row_steps' has ", loaded, " rows; expected ", rows);
  }
}

int64_t RowOptimizer::state_bytes(const std::string& name) const {
  const auto found = states_.find(name);
  ROWAN_CHECK(found != states_.end(), "[", rule(), "] parameter '", name, "' has no state here");
  int64_t bytes = static_cast<int64_t>(found->second.row_steps.size() * sizeof(int32_t));
  for (const Tensor& slot : found->second.slots) bytes += slot.size() * static_cast<int64_t>(sizeof(Real));
  return bytes;
}

void RowOptimizer::step(const std::string& name, Parameter& p, const StepInfo& info) {
  if (!p.has_grad()) return;
  State& state = state_of(name, p);
  if (p.kind() == GradKind::kRowSparse) p.row_grad().coalesce();
  ++state.step;
  RowDriver driver(*this, state, p, info);
  // With untouched = dense, rows without a gradient still move, unless a zero gradient and no decay leave them as they are.
  const bool every_row = axes_.untouched == "dense" && !(idle_without_gradient() && weight_decay_of(p) == 0);
  if (p.kind() == GradKind::kDense) {
    driver.dense(p.grad());
  } else if (every_row) {
    driver.sweep(p.row_grad());
  } else {
    driver.touched(p.row_grad());
  }
  p.var.clear_grad();
}

}  // namespace rowan

#include "optim/planned_state.h"

#include "optim/row_catch_up.h"
#include "optim/row_optimizer.h"

namespace rowan {
namespace {

// The same as RowState::add_slot() makes; a test compares the two for every rule.
int64_t slot_bytes(const Slot& slot, const Shape& shape, int64_t rows, int64_t width) {
  constexpr auto kReal = static_cast<int64_t>(sizeof(Real));
  switch (slot.per) {
    case Slot::Per::kRow:
      return rows * kReal;
    case Slot::Per::kColumn:
      return width * kReal;
    case Slot::Per::kBlock:
      return rows * ((width + kStateBlock - 1) / kStateBlock) * kReal;
    case Slot::Per::kElementByte:
      return shape.size();
    case Slot::Per::kElement:
      break;
  }
  return shape.size() * kReal;
}

// RowState::row_steps, last_touch and last_steps.
int64_t counter_bytes(const RowOptimizer& rule, int64_t rows, GradKind kind) {
  const RowAxes& axes = rule.axes();
  const int counters = (axes.counter == "row") + rule.wants_last_touch() + (axes.tracks_rows() && kind == GradKind::kRowSparse);
  return counters * rows * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace

std::optional<int64_t> RowOptimizer::planned_state_bytes(const Shape& shape, GradKind kind) const {
  const bool table = shape.rank() >= 2;
  const int64_t rows = table ? shape.rows() : 1, width = table ? shape.back() : shape.size();
  int64_t bytes = counter_bytes(*this, rows, kind);
  for (const Slot& slot : slots()) bytes += slot_bytes(slot, shape, rows, width);
  return bytes;
}

// RowState::ahead_base and ahead_rows, of all rows but those of the last batch.
int64_t RowOptimizer::planned_flush_bytes(const Shape& shape, GradKind kind) const {
  if (kind != GradKind::kRowSparse || !RowCatchUp::jumps(*this)) return 0;
  return shape.size() * static_cast<int64_t>(sizeof(Real)) + shape.rows() * static_cast<int64_t>(sizeof(int32_t));
}

// What is no tensor goes to a checkpoint's writer by value.
int64_t RowOptimizer::planned_copy_bytes(const Shape& shape, GradKind kind) const {
  int64_t bytes = counter_bytes(*this, shape.rank() >= 2 ? shape.rows() : 1, kind);
  for (const Slot& slot : slots())
    if (slot.per == Slot::Per::kElementByte) bytes += shape.size();
  return bytes;
}

int64_t planned_state_bytes(const Optimizer& rule, const Shape& shape, GradKind kind) {
  const std::optional<int64_t> bytes = rule.planned_state_bytes(shape, kind);
  ROWAN_CHECK(bytes.has_value(), "[plan] the rule '", rule.rule(), "' does not say beforehand how much state it keeps");
  return *bytes;
}

}  // namespace rowan

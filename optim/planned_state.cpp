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

}  // namespace

std::optional<int64_t> RowOptimizer::planned_state_bytes(const Shape& shape, GradKind kind) const {
  const bool table = shape.rank() >= 2;
  const int64_t rows = table ? shape.rows() : 1, width = table ? shape.back() : shape.size();
  const int counters = (axes_.counter == "row") + wants_last_touch() + (axes_.tracks_rows() && kind == GradKind::kRowSparse);
  int64_t bytes = counters * rows * static_cast<int64_t>(sizeof(int32_t));
  for (const Slot& slot : slots()) bytes += slot_bytes(slot, shape, rows, width);
  return bytes;
}

// RowState::ahead_base and ahead_rows, of all rows but those of the last batch.
int64_t RowOptimizer::planned_flush_bytes(const Shape& shape, GradKind kind) const {
  if (kind != GradKind::kRowSparse || !axes_.tracks_rows() || !RowCatchUp::jumps(*this)) return 0;
  return shape.size() * static_cast<int64_t>(sizeof(Real)) + shape.rows() * static_cast<int64_t>(sizeof(int32_t));
}

int64_t planned_state_bytes(const Optimizer& rule, const Shape& shape, GradKind kind) {
  const std::optional<int64_t> bytes = rule.planned_state_bytes(shape, kind);
  ROWAN_CHECK(bytes.has_value(), "[plan] the rule '", rule.rule(), "' does not say beforehand how much state it keeps");
  return *bytes;
}

}  // namespace rowan

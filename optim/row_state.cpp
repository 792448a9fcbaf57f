#include "optim/row_state.h"

namespace rowan {
namespace {

int64_t blocks_of(int64_t width) {
  return (width + kStateBlock - 1) / kStateBlock;
}

}  // namespace

void RowState::add_slot(const Slot& slot) {
  Shape size = shape;
  if (slot.per == Slot::Per::kRow) size = {rows()};
  if (slot.per == Slot::Per::kColumn) size = {width()};
  if (slot.per == Slot::Per::kBlock) size = {rows(), blocks_of(width())};
  const bool byte = slot.per == Slot::Per::kElementByte;
  layout.push_back(slot);
  slots.push_back(byte ? Tensor() : Tensor::full(size, static_cast<Real>(slot.init)));
  bytes.emplace_back();
  if (byte) bytes.back().assign(static_cast<size_t>(shape.size()), static_cast<uint8_t>(slot.init));
}

int64_t RowState::stride(size_t s) const {
  switch (layout[s].per) {
    case Slot::Per::kRow:
      return 1;
    case Slot::Per::kColumn:
      return 0;
    case Slot::Per::kBlock:
      return blocks_of(width());
    default:
      return width();
  }
}

void RowState::point(RowBlock& b, int64_t row) {
  for (size_t s = 0; s < layout.size(); ++s) {
    b.stride[s] = stride(s);
    b.slots[s] = slots[s].empty() ? nullptr : slots[s].data() + row * b.stride[s];
    b.byte_slots[s] = bytes[s].empty() ? nullptr : bytes[s].data() + row * b.stride[s];
  }
  b.last_touches = last_touch.empty() ? nullptr : last_touch.data() + row;
}

int64_t RowState::bytes_a_row_moved() const {
  int64_t moved = 0;
  for (size_t s = 0; s < layout.size(); ++s)
    moved += 2 * stride(s) * static_cast<int64_t>(layout[s].per == Slot::Per::kElementByte ? 1 : sizeof(Real));
  return moved + static_cast<int64_t>((last_touch.empty() ? 0 : 8) + (row_steps.empty() ? 0 : 8));
}

}  // namespace rowan

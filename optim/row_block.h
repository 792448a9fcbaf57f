// RowBlock: what a rule sees of a table in one call of update_rows(): some rows, their gradients and their state.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/real.h"

namespace rowan {

inline constexpr size_t kMaxSlots = 6;

inline constexpr int64_t kStateBlock = 64;

// Named state of a rule. A block is kStateBlock elements of a row, the last one of a row may be shorter; what stands for a column
// is shared by all rows. Bytes are for moments that are kept in 8 bits.
struct Slot {
  enum class Per { kElement, kRow, kColumn, kBlock, kElementByte };
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

// A step of a parameter, kept while some row may still have to make it up.
struct StepRecord {
  StepScalars scalars;
  double shrink = 1;      // the factor of decoupled weight decay, as Real holds it
  double log_decay = 0;   // log of the product of all factors up to this step, in double
  int64_t irregular = 0;  // how many of those factors were not positive: their logarithm does not count
};

// Steps that one row has missed, in a form that a rule can jump over (RowOptimizer::jump).
struct RowJump {
  int64_t width = 0;
  Real* weight = nullptr;
  std::array<Real*, kMaxSlots> slots{};
  const StepRecord* missed = nullptr;  // the first of `count`
  int64_t count = 0;
  double max_lr = 0;  // of all missed steps, or more

  // Product of the decay factors of the steps [from, count); all of them must be positive: regular().
  double decay_from(int64_t from) const;
  bool regular() const;
};

// The rows of one call. Pointers of row k are valid for `width` elements; slots per row for one.
struct RowBlock {
  int64_t rows = 0;
  int64_t width = 0;
  double lr = 0;
  double weight_decay = 0;  // for rules that decay by themselves (decays_weights()); the driver has applied it for the others
  Real grad_scale = 1;      // for rules that multiply by themselves (scales_gradient()); the driver has done it for the others
  Real shrink = 1;          // decoupled decay's factor, for rules that multiply by themselves (shrinks_weights()); the same

  Real* weight(int64_t k) const { return weights + row(k) * width; }
  const Real* grad(int64_t k) const { return grads + k * width; }  // summed, scaled, clipped
  Real* slot(size_t s, int64_t k) const { return slots[s] + row(k) * stride[s]; }
  uint8_t* bytes(size_t s, int64_t k) const { return byte_slots[s] + row(k) * stride[s]; }
  int32_t* last_touch(int64_t k) const { return last_touches + row(k); }  // for rules that want it: wants_last_touch()
  const StepScalars& scalars(int64_t k) const { return row_scalars == nullptr ? *step_scalars : row_scalars[k]; }

  // Filled by the driver.
  const int32_t* ids = nullptr;  // rows of the table; nullptr: contiguous from row 0 of the pointers below
  Real* weights = nullptr;
  const Real* grads = nullptr;
  std::array<Real*, kMaxSlots> slots{};
  std::array<uint8_t*, kMaxSlots> byte_slots{};
  std::array<int64_t, kMaxSlots> stride{};  // elements of a slot from one row to the next
  int32_t* last_touches = nullptr;
  const StepScalars* step_scalars = nullptr;
  const StepScalars* row_scalars = nullptr;

 private:
  int64_t row(int64_t k) const { return ids == nullptr ? k : ids[k]; }
};

}  // namespace rowan

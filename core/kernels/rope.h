// Rotary position embedding (Su et al., 2021, "RoFormer"): pairs of a head's elements are rotated by an angle that grows with the
// position, so that the dot product of a rotated query and key depends on their distance only.
//
//   pair i at position p turns by p * theta^(-2i/rotated):  (a, b) -> (a cos - b sin, b cos + a sin),  i in [0, rotated/2)
//
// Style "half" pairs elements (i, i + rotated/2), style "interleaved" pairs (2i, 2i + 1). Elements from `rotated` on stay as they
// are. A rotation's transpose is its inverse, so the backward of rotate() is rotate_back().
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace rowan {

struct Rope {
  double theta = 10000;
  bool interleaved = false;
  int64_t rotated = 0;  // elements of each head that are rotated: the first ones; even
};

// Throws unless rotated is even and in [0, head_dim], and theta positive.
void check_rope(const Rope& rope, int64_t head_dim);

// Cosines and sines of positions [first, first + count), computed in double. The entry of a position does not depend on `first`.
class RopeTable {
 public:
  RopeTable(const Rope& rope, int64_t first_position, int64_t count);

  const Real* cos(int64_t i) const { return cos_.data() + i * cos_.shape().back(); }  // (rotated/2), of position first + i
  const Real* sin(int64_t i) const { return sin_.data() + i * sin_.shape().back(); }
  const Rope& rope() const { return rope_; }

 private:
  Rope rope_;
  Tensor cos_, sin_;  // (count, rotated/2)
};

// Rotates `heads` heads that stand `stride` elements apart, all at the position that cos and sin belong to, in place.
void rotate(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, const Rope& rope);
void rotate_back(Real* head, int64_t heads, int64_t stride, const Real* cos, const Real* sin, const Rope& rope);

// Rotates one head at `positions` positions, `stride` elements apart, in place: by entries first, first + 1, ... of the table.
void rotate_positions(Real* head, int64_t positions, int64_t stride, const RopeTable& table, int64_t first);
void rotate_positions_back(Real* head, int64_t positions, int64_t stride, const RopeTable& table, int64_t first);

}  // namespace rowan

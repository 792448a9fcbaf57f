// rope: rotary position embedding of every head (core/kernels/rope.h has the formula).
//
// x (B,T,H,hd) -> y (B,T,H,hd); the token at t stands at position first_position + t. dx += dy rotated back. The fused attention
// rotates queries and keys itself, with the same table; this op is for models that want rotated values of their own.
#pragma once

#include "core/kernels/rope.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

namespace detail {

using Rotation = void (*)(Real*, int64_t, int64_t, const Real*, const Real*, const Rope&);

inline Tensor rotate_tokens(const Tensor& x, const RopeTable& table, Rotation rotation) {
  Tensor y = x.clone();
  const int64_t length = x.shape()[1], heads = x.shape()[2], head_dim = x.shape()[3];
  constexpr int64_t kTokensAPiece = 32;
  parallel_ranges(x.shape()[0] * length, kTokensAPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      rotation(y.data() + i * heads * head_dim, heads, head_dim, table.cos(i % length), table.sin(i % length), table.rope());
  });
  return y;
}

}  // namespace detail

inline Variable rope(const Variable& x, const Rope& settings, int64_t first_position) {
  ROWAN_CHECK(x.shape().rank() == 4, "[rope] x must be (B,T,H,hd), not ", x.shape());
  check_rope(settings, x.shape()[3]);
  const RopeTable table(settings, first_position, x.shape()[1]);
  return record("rope", detail::rotate_tokens(x.value(), table, rotate), {x},
                [table](const Tensor& dy, InputGrads& in) { in.add(0, detail::rotate_tokens(dy, table, rotate_back)); });
}

}  // namespace rowan

// silu: y = x sigmoid(x), elementwise, any shape.
#pragma once

#include "core/ops/unary.h"

namespace rowan {

inline Variable silu(const Variable& x) {
  return unary("silu", x, silu_forward, silu_backward);
}

}  // namespace rowan

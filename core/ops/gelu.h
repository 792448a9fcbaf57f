// gelu: y = x P(X < x), X ~ N(0,1), elementwise, any shape: the exact form, by the error function.
#pragma once

#include "core/ops/unary.h"

namespace rowan {

inline Variable gelu(const Variable& x) {
  return unary("gelu", x, gelu_forward, gelu_backward);
}

}  // namespace rowan

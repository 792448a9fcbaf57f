// gelu_tanh: y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), elementwise, any shape: GPT-2's approximation of gelu.
#pragma once

#include "core/ops/unary.h"

namespace rowan {

inline Variable gelu_tanh(const Variable& x) {
  return unary("gelu_tanh", x, gelu_tanh_forward, gelu_tanh_backward);
}

}  // namespace rowan

#include "core/kernels/bias_activation.h"

#include <algorithm>

#include "core/kernels/elementwise.h"

namespace rowan {

void activation_forward(Activation act, const Real* x, Real* y, int64_t n) {
  switch (act) {
    case Activation::kNone:
      if (x != y) std::copy_n(x, n, y);
      return;
    case Activation::kGelu:
      return gelu_forward(x, y, n);
    case Activation::kGeluTanh:
      return gelu_tanh_forward(x, y, n);
  }
}

void activation_backward(Activation act, const Real* x, const Real* dy, Real* dx, int64_t n) {
  switch (act) {
    case Activation::kNone:
      if (dx != dy) std::copy_n(dy, n, dx);
      return;
    case Activation::kGelu:
      return gelu_backward(x, dy, dx, n);
    case Activation::kGeluTanh:
      return gelu_tanh_backward(x, dy, dx, n);
  }
}

GemmEpilogue BiasActivation::epilogue() const {
  if (idle()) return {};
  const auto run = [](const void* context, const GemmTile& tile) {
    const auto& self = *static_cast<const BiasActivation*>(context);
    for (int64_t i = 0; i < tile.rows; ++i) {
      Real* u = tile.data + i * tile.ld;
      if (self.bias) accumulate(self.bias + tile.col, u, tile.cols);
      if (self.act != Activation::kNone) activation_forward(self.act, u, self.y + (tile.row + i) * tile.ld + tile.col, tile.cols);
    }
  };
  return {run, this};
}

}  // namespace rowan

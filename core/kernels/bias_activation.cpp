#include "core/kernels/bias_activation.h"

#include "core/kernels/elementwise.h"

namespace rowan {
namespace {

void activate(Activation act, bool keep_slope, Real* u, Real* y, int64_t n) {
  switch (act) {
    case Activation::kNone:
      return;
    case Activation::kGelu:
      return keep_slope ? gelu_with_slope(u, y, u, n) : gelu_forward(u, y, n);
    case Activation::kGeluTanh:
      return keep_slope ? gelu_tanh_with_slope(u, y, u, n) : gelu_tanh_forward(u, y, n);
  }
}

}  // namespace

GemmEpilogue BiasActivation::epilogue() const {
  if (idle()) return {};
  const auto run = [](const void* context, const GemmTile& tile) {
    const auto& self = *static_cast<const BiasActivation*>(context);
    for (int64_t i = 0; i < tile.rows; ++i) {
      Real* u = tile.data + i * tile.ld;
      if (self.bias) accumulate(self.bias + tile.col, u, tile.cols);
      activate(self.act, self.keep_slope, u, self.y + (tile.row + i) * tile.ld + tile.col, tile.cols);
    }
  };
  return {run, this};
}

}  // namespace rowan

// What a linear layer does to its product: add the bias, apply the activation. Runs on a tile while it is in cache.
#pragma once

#include <cstdint>

#include "core/kernels/gemm.h"

namespace rowan {

enum class Activation { kNone, kGelu, kGeluTanh };

// y = act(x) and dx = act'(x) dy over n elements, single-threaded. y or dx may be the very array of an input.
void activation_forward(Activation act, const Real* x, Real* y, int64_t n);
void activation_backward(Activation act, const Real* x, const Real* dy, Real* dx, int64_t n);

// u += bias in the tile, then y = act(u) in the same place of y, whose rows are as far apart as those of u. bias has one element
// a column of the whole product and may be null; y may be u, and is not written for Activation::kNone.
struct BiasActivation {
  const Real* bias;
  Activation act;
  Real* y;

  bool idle() const { return bias == nullptr && act == Activation::kNone; }
  GemmEpilogue epilogue() const;  // refers to this object: it must outlive the product
};

}  // namespace rowan

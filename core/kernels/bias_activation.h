// What a linear layer does to its product: add the bias, apply the activation. Runs on a tile while it is in cache.
#pragma once

#include <cstdint>

#include "core/kernels/gemm.h"

namespace rowan {

enum class Activation { kNone, kGelu, kGeluTanh };

// u += bias in the tile, then y = act(u) in the same place of y, whose rows are as far apart as those of u. bias has one element
// a column of the whole product and may be null; y is not written for Activation::kNone. With keep_slope, u becomes act'(u): all
// that the backward pass needs of it, and nearly free where y is computed. Without it u stays as it is, and y may be u.
struct BiasActivation {
  const Real* bias;
  Activation act;
  Real* y;
  bool keep_slope;

  bool idle() const { return bias == nullptr && act == Activation::kNone; }
  GemmEpilogue epilogue() const;  // refers to this object: it must outlive the product
};

}  // namespace rowan

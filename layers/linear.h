// Linear: y = act(x W^T + b), W (out,in).
#pragma once

#include "core/ops/linear.h"
#include "layers/module.h"

namespace rowan {

struct Linear final : Module {
  Parameter weight;  // (out,in)
  Parameter bias;    // (out) or absent

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias) : weight(Tensor({out, in})) {
    if (with_bias) bias = Parameter(Tensor({out}));
  }

  void visit(ParamVisitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }

  Variable forward(const Variable& x, Activation activation = Activation::kNone) const {  // (...,in) -> (...,out)
    return linear(x, weight.var, bias.var, activation);
  }
};

}  // namespace rowan

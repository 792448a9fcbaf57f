// Mlp: down(gelu(up(x))), or SwiGLU: down(silu(gate(x)) * up(x)) (Shazeer, "GLU variants improve transformer", 2020).
#pragma once

#include "core/ops/swiglu.h"
#include "layers/gpt_config.h"
#include "layers/linear.h"

namespace rowan {

struct Mlp final : Module {
  Linear up;    // D -> F
  Linear gate;  // D -> F, swiglu only
  Linear down;  // F -> D
  Activation activation = Activation::kNone;

  explicit Mlp(const GptConfig& c) : up(c.d_model, c.d_ff, c.bias), down(c.d_ff, c.d_model, c.bias) {
    if (c.mlp == "swiglu") gate = Linear(c.d_model, c.d_ff, c.bias);
    if (c.mlp == "gelu") activation = Activation::kGelu;
    if (c.mlp == "gelu_tanh") activation = Activation::kGeluTanh;
  }

  void visit(ParamVisitor& v) override {
    v("up", up);
    if (gate.weight.present()) v("gate", gate);
    v("down", down);
  }

  Variable forward(const Variable& x) const {  // (B,T,D) -> (B,T,D)
    if (gate.weight.present()) return down.forward(swiglu(gate.forward(x), up.forward(x)));
    return down.forward(up.forward(x, activation));
  }
};

}  // namespace rowan

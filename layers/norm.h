// Norm: LayerNorm (with or without bias) or RMSNorm over the last dimension.
#pragma once

#include "core/ops/layer_norm.h"
#include "core/ops/rms_norm.h"
#include "layers/gpt_config.h"
#include "layers/module.h"

namespace rowan {

struct Norm final : Module {
  Parameter weight;  // (D)
  Parameter bias;    // (D) or absent: RMSNorm has none
  double eps = 1e-5;
  bool rms = false;

  Norm() = default;
  explicit Norm(const GptConfig& c) : weight(Tensor({c.d_model})), eps(c.norm_eps), rms(c.norm == "rmsnorm") {
    if (!rms && c.bias) bias = Parameter(Tensor({c.d_model}));
  }

  void visit(ParamVisitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }

  Variable forward(const Variable& x) const {
    return rms ? rms_norm(x, weight.var, eps) : layer_norm(x, weight.var, bias.var, eps);
  }
};

}  // namespace rowan

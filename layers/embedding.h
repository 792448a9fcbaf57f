// Embedding: a table of token vectors. forward() looks rows up; only they receive a gradient, unless the table also serves as the
// LM head (tied): softmax then gives every row a gradient, and the parameter is dense.
#pragma once

#include "core/ops/gather.h"
#include "layers/module.h"

namespace rowan {

struct Embedding final : Module {
  Parameter weight;  // (V,D)

  Embedding(int64_t vocab_size, int64_t d_model, GradKind kind) : weight(Tensor({vocab_size, d_model}), kind) {}

  void visit(ParamVisitor& v) override { v("weight", weight); }

  Variable forward(const Ids& tokens) const { return gather(weight.var, tokens); }  // (B,T) -> (B,T,D)
};

}  // namespace rowan

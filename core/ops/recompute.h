// recompute: a part of the graph whose inner values are thrown away after the forward pass and made again in backward. Costs one
// more forward pass of that part and saves what it would have kept.
//
//   y = f(x)        dx += df/dx dy, and the gradients of whatever parameters f uses
//
// f must be a pure function: run twice it gives the same bits, dropout included (masks are functions of a key). Then results and
// gradients are those of f(x) itself, bit for bit. Chen et al., "Training deep nets with sublinear memory cost", 2016.
#pragma once

#include <functional>
#include <utility>

#include "core/variable.h"

namespace rowan {

inline Variable recompute(const Variable& x, std::function<Variable(const Variable&)> f) {
  if (!grad_enabled() || !x.needs_grad()) return f(x);
  Tensor y;
  {
    const NoGrad no_grad;
    y = f(Variable(x.value())).value();
  }
  return record("recompute", y, {x}, [value = x.value(), f = std::move(f)](const Tensor& dy, InputGrads& in) {
    Variable input = Variable::leaf(value);
    backward(f(input), dy);
    in.add(0, input.grad());
  });
}

}  // namespace rowan

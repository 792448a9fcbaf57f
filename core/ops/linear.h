// linear: y = act(x W^T + b).
//
//   x (...,in), W (out,in), b (out) or empty, y (...,out); the leading dimensions of x are taken as one, N.
//   u = x W^T + b      du = act'(u) dy      dx += du W      dW += du^T x      db_j += sum_i du_ij
//
// Bias and activation are applied to each tile of the product while it is in cache. With an activation, act'(u) is kept for the
// backward pass, which turns it into du in place. Not here: a row-sparse weight (every row gets a gradient).
#pragma once

#include "core/kernels/bias_activation.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/gemm.h"
#include "core/kernels/reduce.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {
namespace detail {

inline Shape linear_shape(const Variable& x, const Variable& weight, const Variable& bias) {
  const Shape &xs = x.shape(), &ws = weight.shape();
  ROWAN_CHECK(ws.rank() == 2, "[linear] the weight must be (out, in), not ", ws);
  ROWAN_CHECK(xs.rank() >= 1 && xs.back() == ws[1], "[linear] x has width ", xs.back(), " but weight is ", ws);
  ROWAN_CHECK(bias.empty() || bias.shape() == Shape{ws[0]}, "[linear] bias is ", bias.shape(), " but weight is ", ws);
  ROWAN_CHECK(!weight.needs_grad() || weight.grad_kind() == GradKind::kDense,
              "[linear] the weight's gradient is declared row-sparse, but every row of it gets one");
  Shape shape;
  for (int i = 0; i + 1 < xs.rank(); ++i) shape.append(xs[i]);
  shape.append(ws[0]);
  return shape;
}

// N of (...,width), defined for width 0 too.
inline int64_t leading_size(const Shape& shape) {
  int64_t n = 1;
  for (int i = 0; i + 1 < shape.rank(); ++i) n *= shape[i];
  return n;
}

}  // namespace detail

inline Variable linear(const Variable& x, const Variable& weight, const Variable& bias = {}, Activation act = Activation::kNone) {
  const Shape shape = detail::linear_shape(x, weight, bias);
  const int64_t n = detail::leading_size(x.shape()), out = weight.shape()[0], width = weight.shape()[1];
  const bool taped = grad_enabled() && (x.needs_grad() || weight.needs_grad() || bias.needs_grad());
  const Tensor xv = x.value(), wv = weight.value();

  Tensor y(shape);
  const bool keep_slope = taped && act != Activation::kNone;
  Tensor u = keep_slope ? Tensor(shape) : y;
  const BiasActivation finish{bias.empty() ? nullptr : bias.value().data(), act, y.data(), keep_slope};
  gemm(Op::kNone, Op::kTranspose, n, out, width, 1, xv.data(), width, wv.data(), width, 0, u.data(), out, finish.epilogue());
  if (!taped) return record("linear", y, {x, weight, bias}, {});

  const Tensor slope = keep_slope ? u : Tensor();
  return record("linear", y, {x, weight, bias}, [=](const Tensor& dy, InputGrads& in) {
    Tensor du = dy;
    if (keep_slope) {
      du = slope;
      parallel_ranges(n * out, kElementwiseGrain, [&](int64_t begin, int64_t end) {
        multiply(slope.data() + begin, dy.data() + begin, du.data() + begin, end - begin);
      });
    }
    if (in.wants(0)) {
      const InputGrads::Target dx = in.target(0);
      gemm(Op::kNone, Op::kNone, n, width, out, 1, du.data(), out, wv.data(), width, dx.fresh ? 0 : 1, dx.tensor.data(), width);
    }
    if (in.wants(1)) {
      const InputGrads::Target dw = in.target(1);
      gemm(Op::kTranspose, Op::kNone, out, width, n, 1, du.data(), out, xv.data(), width, dw.fresh ? 0 : 1, dw.tensor.data(),
           width);
    }
    if (in.wants(2)) add_column_sums(du.data(), n, out, in.dense(2).data());
  });
}

}  // namespace rowan

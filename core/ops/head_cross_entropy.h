// head_cross_entropy: the LM head and its loss in one, without the logits (N,V) in memory.
//
//   x (...,D), W (V,D), N targets in [0,V) or kIgnored, loss a scalar:
//   z = x W^T      loss = scale * sum over counted i of -log softmax(z_i)[target_i]
//   dz = scale (softmax(z) - onehot(target)), zero in ignored rows      dx += dz W      dW += dz^T x
//
// Tokens go through in chunks whose logits fit a bounded buffer. As they are not kept, the gradients are made in the forward
// pass, when the tape is on, and backward hands them over. With scale = 1 / (counted targets of a whole step), micro-batches of
// different counts add up to the mean over tokens.
//
// A logit that is not finite makes the loss not finite. Without any counted target, loss and gradients are zero. Not here: a
// row-sparse weight (softmax gives every row a gradient), label smoothing, a bias.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/gemm.h"
#include "core/kernels/softmax_loss.h"
#include "core/parallel.h"
#include "core/variable.h"

namespace rowan {

// What the loss is made of, summed in double in the order of the tokens.
struct HeadStats {
  double loss_sum = 0;  // over counted targets, in nats, not scaled
  int64_t counted = 0;
  std::vector<float>* token_loss = nullptr;   // when set, gets N values: -log softmax(z)[target]; 0 where ignored
  std::vector<float>* log_sum_exp = nullptr;  // when set, gets N values: log sum_j e^(z_j); 0 where ignored
};

namespace detail {

inline constexpr int64_t kHeadBuffer = 1 << 24;     // logits at a time, as far as kHeadFewestRows allows
inline constexpr int64_t kHeadFewestRows = 64;      // fewer would spend the time on reading W and writing dW
inline constexpr int64_t kHeadRowStep = 8;          // what the matrix product takes at a time
inline constexpr int64_t kHeadLossGrain = 1 << 14;  // logits that a thread takes at least

// Tokens in a chunk: equal parts of N, a function of sizes alone.
inline int64_t head_chunk(int64_t n, int64_t v) {
  const int64_t most = std::max(kHeadFewestRows, kHeadBuffer / std::max<int64_t>(v, 1));
  const int64_t chunks = std::max<int64_t>(1, (n + most - 1) / most);
  const int64_t rows = (n + chunks - 1) / chunks;
  return std::min(n, (rows + kHeadRowStep - 1) / kHeadRowStep * kHeadRowStep);
}

struct HeadSizes {
  int64_t n, d, v;
};

inline HeadSizes head_sizes(const Shape& x, const Shape& weight) {
  ROWAN_CHECK(weight.rank() == 2 && weight[0] > 0, "[head_cross_entropy] the weight must be (V, D), not ", weight);
  ROWAN_CHECK(x.rank() >= 1 && x.back() == weight[1], "[head_cross_entropy] x has width ", x.back(), " but weight is ", weight);
  int64_t n = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) n *= x[i];
  return {n, weight[1], weight[0]};
}

// One pass over the tokens. dx and dw are empty when nobody wants them, and written in full otherwise.
class HeadPass {
 public:
  HeadPass(const HeadSizes& sizes, const Tensor& x, const Tensor& weight, const Ids& targets, double scale)
      : s_(sizes), x_(x), weight_(weight), targets_(targets), scale_(scale), rows_(static_cast<size_t>(sizes.n)) {}

  void run(Tensor& dx, Tensor& dw) {
    const int64_t chunk = head_chunk(s_.n, s_.v);
    Tensor logits({chunk, s_.v});
    bool dw_written = false;
    for (int64_t begin = 0; begin < s_.n; begin += chunk) {
      const int64_t rows = std::min(chunk, s_.n - begin);
      const Real* x = x_.data() + begin * s_.d;
      if (!counted_in(begin, rows)) {
        if (!dx.empty()) std::fill_n(dx.data() + begin * s_.d, rows * s_.d, Real(0));
        continue;
      }
      gemm(Op::kNone, Op::kTranspose, rows, s_.v, s_.d, 1, x, s_.d, weight_.data(), s_.d, 0, logits.data(), s_.v);
      losses(begin, rows, logits.data(), !dx.empty() || !dw.empty());
      if (!dx.empty())
        gemm(Op::kNone, Op::kNone, rows, s_.d, s_.v, 1, logits.data(), s_.v, weight_.data(), s_.d, 0, dx.data() + begin * s_.d,
             s_.d);
      if (!dw.empty())
        gemm(Op::kTranspose, Op::kNone, s_.v, s_.d, rows, 1, logits.data(), s_.v, x, s_.d, dw_written ? 1 : 0, dw.data(), s_.d);
      dw_written = true;
    }
    if (!dw.empty() && !dw_written) dw.fill(0);
  }

  void report(HeadStats& stats) const {
    stats.loss_sum = 0;
    stats.counted = 0;
    for (int64_t i = 0; i < s_.n; ++i) {
      if (targets_[i] == kIgnored) continue;
      stats.loss_sum += rows_[static_cast<size_t>(i)].loss;
      ++stats.counted;
    }
    const auto copy = [this](std::vector<float>* out, double RowLoss::*field) {
      if (out == nullptr) return;
      out->clear();
      for (const RowLoss& row : rows_) out->push_back(static_cast<float>(row.*field));
    };
    copy(stats.token_loss, &RowLoss::loss);
    copy(stats.log_sum_exp, &RowLoss::log_sum_exp);
  }

 private:
  bool counted_in(int64_t begin, int64_t rows) const {
    const auto first = targets_.values().begin() + begin;
    return std::any_of(first, first + rows, [](int32_t t) { return t != kIgnored; });
  }

  // Turns logits (rows,V) into their gradient when it is wanted.
  void losses(int64_t begin, int64_t rows, Real* logits, bool gradient) {
    parallel_ranges(rows, std::max<int64_t>(1, kHeadLossGrain / s_.v), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        Real* z = logits + i * s_.v;
        if (const int32_t target = targets_[begin + i]; target != kIgnored)
          rows_[static_cast<size_t>(begin + i)] = softmax_loss(z, s_.v, target, scale_, gradient);
        else if (gradient)
          std::fill_n(z, s_.v, Real(0));
      }
    });
  }

  HeadSizes s_;
  const Tensor& x_;
  const Tensor& weight_;
  const Ids& targets_;
  double scale_;
  std::vector<RowLoss> rows_;  // (N), zeros where ignored
};

// Hands over a gradient that was made with d loss = 1. The caller keeps no handle: a leaf then takes the buffer, not a copy.
inline void hand_over(InputGrads& in, size_t i, Tensor gradient, Real d_loss) {
  if (!in.wants(i)) return;
  if (d_loss != 1)
    parallel_ranges(gradient.size(), kElementwiseGrain,
                    [&](int64_t begin, int64_t end) { scale(d_loss, gradient.data() + begin, end - begin); });
  in.add(i, gradient);
}

}  // namespace detail

inline Variable head_cross_entropy(const Variable& x, const Variable& weight, const Ids& targets, double scale,
                                   HeadStats* stats = nullptr) {
  const detail::HeadSizes sizes = detail::head_sizes(x.shape(), weight.shape());
  ROWAN_CHECK(targets.size() == sizes.n, "[head_cross_entropy] ", targets.size(), " targets for x of shape ", x.shape());
  ROWAN_CHECK(!grad_enabled() || !weight.needs_grad() || weight.grad_kind() == GradKind::kDense,
              "[head_cross_entropy] the weight's gradient is declared row-sparse, but softmax gives every row one");
  check_ids(targets, sizes.v, "head_cross_entropy", kIgnored);

  Tensor dx = grad_enabled() && x.needs_grad() ? Tensor(x.shape()) : Tensor();
  Tensor dw = grad_enabled() && weight.needs_grad() ? Tensor(weight.shape()) : Tensor();
  detail::HeadPass pass(sizes, x.value(), weight.value(), targets, scale);
  pass.run(dx, dw);
  HeadStats sums;
  pass.report(stats ? *stats : sums);
  const Tensor loss = Tensor::scalar(static_cast<Real>(scale * (stats ? *stats : sums).loss_sum));
  return record("head_cross_entropy", loss, {x, weight},
                [dx = std::move(dx), dw = std::move(dw)](const Tensor& dy, InputGrads& in) mutable {
                  detail::hand_over(in, 0, std::exchange(dx, {}), dy.item());
                  detail::hand_over(in, 1, std::exchange(dw, {}), dy.item());
                });
}

// The logits themselves, (...,V) = x W^T, for sampling: all of them are in memory, so x should be short.
inline Tensor head_logits(const Tensor& x, const Tensor& weight) {
  const auto [n, d, v] = detail::head_sizes(x.shape(), weight.shape());
  Shape shape;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) shape.append(x.shape()[i]);
  shape.append(v);
  Tensor z(shape);
  gemm(Op::kNone, Op::kTranspose, n, v, d, 1, x.data(), d, weight.data(), d, 0, z.data(), v);
  return z;
}

}  // namespace rowan

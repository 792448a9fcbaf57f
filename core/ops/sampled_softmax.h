// sampled_softmax: the LM head and its loss over the target and a few drawn classes, instead of all V.
//
//   x (...,D), W (V,D), N targets in [0,V) or kIgnored, S negatives shared by all tokens, loss a scalar:
//   z_t = x . W[target]
//   z_j = x . W[negative_j] - log(S q(negative_j)), minus infinity where negative_j = target
//   loss = scale * sum over counted tokens of -log(e^z_t / (e^z_t + sum_j e^z_j))
//   dx += dz_t W[target] + sum_j dz_j W[negative_j]
//   dW[target] += dz_t x          dW[negative_j] += dz_j x
//
// Dividing a drawn class by how often it is expected, S q (draws are with replacement: core/negative_sampler.h), makes the sum over
// the drawn classes an unbiased estimate of the sum over all classes but the target. The target is always there, so it is expected
// once and its correction is log 1 = 0. Loss and gradient then tend to those of the full softmax as S grows, with a bias of O(1/S).
// A negative that is the token's own target (an accidental hit) would count the target twice and is left out.
//
// Bengio and Senecal, "Adaptive importance sampling to accelerate training of a neural probabilistic language model", 2003 and
// 2008; Jean, Cho, Memisevic, Bengio, "On using very large target vocabulary for neural machine translation", ACL 2015; the target
// without correction as Blanc and Rendle, "Adaptive sampled softmax with kernel based sampling", ICML 2018. TensorFlow's
// sampled_softmax_loss corrects the target as well, which is right for its draws without replacement only.
//
// W's gradient has at most N + S rows: W may be row-sparse, and nothing of size V or (N,V) is made. As in head_cross_entropy, the
// gradients are made in the forward pass, and a logit that is not finite makes the loss not finite. The loss is an estimate, low on
// the average (the logarithm of an unbiased sum): compare models by the full softmax.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/kernels/reduce.h"
#include "core/negative_sampler.h"
#include "core/ops/head_cross_entropy.h"

namespace rowan {

namespace detail {

// Stands for minus infinity, which softmax_loss takes for a broken logit: e to it is 0 beside any logit above half of it.
inline constexpr Real kExcludedLogit = std::numeric_limits<Real>::lowest() / 4;

// One pass over the tokens. Gradients are empty when nobody wants them, and written in full otherwise.
class SampledPass {
 public:
  SampledPass(const HeadSizes& sizes, const Tensor& x, const Tensor& weight, const Ids& targets, const Negatives& negatives,
              double scale)
      : n_(sizes.n),
        d_(sizes.d),
        s_(std::ssize(negatives.ids)),
        x_(x),
        weight_(weight),
        targets_(targets),
        negatives_(negatives),
        scale_(scale),
        rows_({s_, d_}),
        losses_(static_cast<size_t>(n_)) {
    for (int64_t j = 0; j < s_; ++j)
      std::copy_n(weight.data() + negatives.ids[static_cast<size_t>(j)] * d_, d_, rows_.data() + j * d_);
    for (const double c : negatives.log_expected) correction_.push_back(static_cast<Real>(c));
    for (int64_t i = 0; i < n_; ++i) {
      place_.push_back(std::ssize(counted_));
      if (targets[i] != kIgnored) counted_.push_back(targets[i]);
    }
  }

  const std::vector<int32_t>& counted() const { return counted_; }  // targets that count, in order

  // dx (N,D), d_negatives (S,D), d_targets (counted,D)
  void run(Tensor& dx, Tensor& d_negatives, Tensor& d_targets) {
    const int64_t chunk = head_chunk(n_, s_ + 1);
    Tensor logits({chunk, s_ + 1});  // the target's is the last of a row
    for (int64_t begin = 0; begin < n_; begin += chunk) {
      const int64_t rows = std::min(chunk, n_ - begin);
      const Real* x = x_.data() + begin * d_;
      gemm(Op::kNone, Op::kTranspose, rows, s_, d_, 1, x, d_, rows_.data(), d_, 0, logits.data(), s_ + 1);
      const bool gradient = !dx.empty() || !d_negatives.empty();
      for_rows(begin, rows, logits.data(), [this, gradient](int64_t i, Real* z) { loss_of(i, z, gradient); });
      if (!dx.empty()) input_gradient(begin, rows, logits.data(), dx);
      if (d_negatives.empty()) continue;
      gemm(Op::kTranspose, Op::kNone, s_, d_, rows, 1, logits.data(), s_ + 1, x, d_, begin == 0 ? 0 : 1, d_negatives.data(), d_);
      for_rows(begin, rows, logits.data(), [&](int64_t i, Real* z) {
        if (targets_[i] == kIgnored) return;
        Real* out = d_targets.data() + place_[static_cast<size_t>(i)] * d_;
        for (int64_t k = 0; k < d_; ++k) out[k] = z[s_] * x_.data()[i * d_ + k];
      });
    }
    if (n_ == 0 && !d_negatives.empty()) d_negatives.fill(0);
  }

  void report(HeadStats& stats) const {
    stats.loss_sum = 0;
    stats.counted = std::ssize(counted_);
    for (const RowLoss& row : losses_) stats.loss_sum += row.loss;
    const auto copy = [this](std::vector<float>* out, double RowLoss::*field) {
      if (out == nullptr) return;
      out->clear();
      for (const RowLoss& row : losses_) out->push_back(static_cast<float>(row.*field));
    };
    copy(stats.token_loss, &RowLoss::loss);
    copy(stats.log_sum_exp, &RowLoss::log_sum_exp);
  }

 private:
  template <class Body>
  void for_rows(int64_t begin, int64_t rows, Real* logits, const Body& body) {
    parallel_ranges(rows, std::max<int64_t>(1, kHeadLossGrain / (s_ + 1)), [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) body(begin + i, logits + i * (s_ + 1));
    });
  }

  // Products (S) of token i become logits, then, when it is wanted, their gradient.
  void loss_of(int64_t i, Real* z, bool gradient) {
    const int32_t target = targets_[i];
    if (target == kIgnored) {
      std::fill_n(z, s_ + 1, Real(0));
      return;
    }
    for (int64_t j = 0; j < s_; ++j) {
      const auto k = static_cast<size_t>(j);
      z[j] = negatives_.ids[k] == target ? kExcludedLogit : z[j] - correction_[k];
    }
    z[s_] = static_cast<Real>(inner_product(x_.data() + i * d_, weight_.data() + target * d_, d_));
    losses_[static_cast<size_t>(i)] = softmax_loss(z, s_ + 1, static_cast<int32_t>(s_), scale_, gradient);
  }

  void input_gradient(int64_t begin, int64_t rows, Real* logits, Tensor& dx) {
    gemm(Op::kNone, Op::kNone, rows, d_, s_, 1, logits, s_ + 1, rows_.data(), d_, 0, dx.data() + begin * d_, d_);
    for_rows(begin, rows, logits, [&](int64_t i, Real* z) {
      if (targets_[i] != kIgnored) axpy(z[s_], weight_.data() + targets_[i] * d_, dx.data() + i * d_, d_);
    });
  }

  int64_t n_, d_, s_;
  const Tensor& x_;
  const Tensor& weight_;
  const Ids& targets_;
  const Negatives& negatives_;
  double scale_;
  Tensor rows_;                   // (S,D) of the weight
  std::vector<Real> correction_;  // (S)
  std::vector<int32_t> counted_;
  std::vector<int64_t> place_;   // (N) of a token's target among those that count
  std::vector<RowLoss> losses_;  // (N), zeros where ignored
};

// Gradients of W by rows, handed over as they are or, to a dense one, added.
struct SampledRows {
  Ids negatives, targets;
  Tensor d_negatives, d_targets;

  void hand_over_to(InputGrads& in, size_t i, const Shape& weight, Real d_loss) {
    if (!in.wants(i)) return;
    if (d_loss != 1) {
      scale(d_loss, d_negatives.data(), d_negatives.size());
      scale(d_loss, d_targets.data(), d_targets.size());
    }
    RowSparseGrad alone(weight[0], weight[1]);
    RowSparseGrad& rows = in.row_sparse(i) ? in.rows(i) : alone;
    rows.append(negatives, std::exchange(d_negatives, {}));
    if (targets.size() > 0) rows.append(targets, std::exchange(d_targets, {}));
    if (in.row_sparse(i)) return;
    alone.coalesce();
    alone.add_to(in.dense(i));
  }
};

inline Ids flat_ids(const std::vector<int32_t>& ids) {
  return Ids({std::ssize(ids)}, ids);
}

}  // namespace detail

// negatives: ids in [0,V), at least one, and the log of how often each is expected. With every class once and log_expected = 0 the
// loss is that of the full softmax.
inline Variable sampled_softmax(const Variable& x, const Variable& weight, const Ids& targets, const Negatives& negatives,
                                double scale, HeadStats* stats = nullptr) {
  const detail::HeadSizes sizes = detail::head_sizes(x.shape(), weight.shape());
  ROWAN_CHECK(targets.size() == sizes.n, "[sampled_softmax] ", targets.size(), " targets for x of shape ", x.shape());
  ROWAN_CHECK(!negatives.ids.empty() && negatives.ids.size() == negatives.log_expected.size(), "[sampled_softmax] ",
              negatives.ids.size(), " negatives with ", negatives.log_expected.size(),
              " expected counts; both must be the same, and not 0");
  check_ids(targets, sizes.v, "sampled_softmax", kIgnored);
  check_ids(detail::flat_ids(negatives.ids), sizes.v, "sampled_softmax");

  detail::SampledPass pass(sizes, x.value(), weight.value(), targets, negatives, scale);
  detail::SampledRows rows;
  Tensor dx = grad_enabled() && x.needs_grad() ? Tensor(x.shape()) : Tensor();
  if (grad_enabled() && weight.needs_grad()) {
    rows = {detail::flat_ids(negatives.ids), detail::flat_ids(pass.counted()), Tensor({std::ssize(negatives.ids), sizes.d}),
            Tensor({std::ssize(pass.counted()), sizes.d})};
  }
  pass.run(dx, rows.d_negatives, rows.d_targets);
  HeadStats sums;
  pass.report(stats ? *stats : sums);
  const Tensor loss = Tensor::scalar(static_cast<Real>(scale * (stats ? *stats : sums).loss_sum));
  return record("sampled_softmax", loss, {x, weight},
                [dx = std::move(dx), rows = std::move(rows), shape = weight.shape()](const Tensor& dy, InputGrads& in) mutable {
                  detail::hand_over(in, 0, std::exchange(dx, {}), dy.item());
                  rows.hand_over_to(in, 1, shape, dy.item());
                });
}

}  // namespace rowan

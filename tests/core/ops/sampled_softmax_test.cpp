#include "core/ops/sampled_softmax.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using test::expect_close;
using test::gradcheck;
using test::random_ids;
using test::random_tensor;

constexpr double kTolerance = kRealIsDouble ? 1e-12 : 1e-5;

struct Problem {
  Tensor x, w;
  Ids targets;
  Negatives negatives;
  Problem(const Shape& ids, int64_t d, int64_t v, int64_t drawn)
      : x(random_tensor({ids[0], ids[1], d}, 1)),
        w(random_tensor({v, d}, 2, 0.5)),
        targets(random_ids(ids, v, 3)),
        negatives(NegativeSampler::log_uniform(v).draw(drawn, test::test_key(4))) {}
};

struct Plain {
  std::vector<double> dx, dw;
  double loss_sum = 0;
};

// The formula, in double.
Plain plain_loss(const Problem& p, double scale) {
  const int64_t d = p.w.shape()[1], n = p.targets.size();
  const size_t s = p.negatives.ids.size();
  Plain out{std::vector<double>(static_cast<size_t>(p.x.size())), std::vector<double>(static_cast<size_t>(p.w.size()))};
  const auto at = [d](const Tensor& t, int64_t i, int64_t k) { return static_cast<double>(t.data()[i * d + k]); };
  for (int64_t i = 0; i < n; ++i) {
    const int32_t target = p.targets[i];
    if (target == kIgnored) continue;
    std::vector<double> z;
    std::vector<int64_t> row;
    const auto add = [&](int64_t c, double correction) {
      double sum = -correction;
      for (int64_t k = 0; k < d; ++k) sum += at(p.x, i, k) * at(p.w, c, k);
      z.push_back(sum);
      row.push_back(c);
    };
    add(target, 0);
    for (size_t j = 0; j < s; ++j)
      if (p.negatives.ids[j] != target) add(p.negatives.ids[j], p.negatives.log_expected[j]);
    double largest = -INFINITY, total = 0;
    for (double logit : z) largest = std::max(largest, logit);
    for (double logit : z) total += std::exp(logit - largest);
    out.loss_sum += largest + std::log(total) - z[0];
    for (size_t j = 0; j < z.size(); ++j) {
      const double dz = scale * (std::exp(z[j] - largest) / total - (j == 0 ? 1 : 0));
      for (int64_t k = 0; k < d; ++k) {
        out.dx[static_cast<size_t>(i * d + k)] += dz * at(p.w, row[j], k);
        out.dw[static_cast<size_t>(row[j] * d + k)] += dz * at(p.x, i, k);
      }
    }
  }
  return out;
}

struct Result {
  double loss = 0;
  HeadStats stats = {};
  Tensor dx, dw;
  std::vector<int32_t> rows = {};
};

Result run(const Problem& p, double scale, GradKind kind = GradKind::kRowSparse) {
  Result out;
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w, kind);
  const Variable loss = sampled_softmax(x, w, p.targets, p.negatives, scale, &out.stats);
  out.loss = loss.value().item();
  backward(loss);
  out.dx = x.grad();
  if (kind == GradKind::kDense) {
    out.dw = w.grad();
    return out;
  }
  w.row_grad().coalesce();
  out.dw = Tensor::zeros(p.w.shape());
  w.row_grad().add_to(out.dw);
  out.rows = w.row_grad().ids();
  return out;
}

void expect_formula(const Problem& p, double scale) {
  const Plain expected = plain_loss(p, scale);
  for (const GradKind kind : {GradKind::kRowSparse, GradKind::kDense}) {
    const Result result = run(p, scale, kind);
    EXPECT_NEAR(result.stats.loss_sum, expected.loss_sum, kTolerance * expected.loss_sum);
    EXPECT_NEAR(result.loss, scale * expected.loss_sum, kTolerance * scale * expected.loss_sum);
    expect_close(test::as_doubles(result.dx), expected.dx, kTolerance);
    expect_close(test::as_doubles(result.dw), expected.dw, kTolerance);
  }
}

TEST(SampledSoftmax, follows_its_formula_with_hits_repeats_and_ignored_targets) {
  Problem p({3, 7}, 5, 12, 20);  // 20 draws of 12 classes: both are certain to occur
  for (int64_t i = 0; i < p.targets.size(); i += 4) p.targets[i] = kIgnored;
  expect_formula(p, 0.25);
}

TEST(SampledSoftmax, goes_through_the_tokens_in_chunks) {
  Problem p({1, 66}, 2, 500, int64_t{1} << 18);
  ASSERT_LT(detail::head_chunk(66, (int64_t{1} << 18) + 1), 66);
  const Plain expected = plain_loss(p, 1);
  const Result result = run(p, 1);
  EXPECT_NEAR(result.stats.loss_sum, expected.loss_sum, 10 * kTolerance * expected.loss_sum);
  expect_close(test::as_doubles(result.dx), expected.dx, kRealIsDouble ? 1e-9 : 1e-3);
  expect_close(test::as_doubles(result.dw), expected.dw, kRealIsDouble ? 1e-9 : 1e-3);
}

TEST(SampledSoftmax, gradients_agree_with_differences) {
  Problem p({2, 3}, 4, 9, 6);
  p.targets[1] = kIgnored;
  for (const GradKind kind : {GradKind::kDense, GradKind::kRowSparse})
    EXPECT_TRUE(gradcheck([&](const std::vector<Variable>& v) { return sampled_softmax(v[0], v[1], p.targets, p.negatives, 0.5); },
                          {p.x, p.w}, {.kinds = {GradKind::kDense, kind}}));
}

// With every class once, and as many draws as classes, S q = 1 and its log is 0: the full softmax.
TEST(SampledSoftmax, is_the_full_softmax_when_every_class_is_drawn_once) {
  Problem p({4, 5}, 6, 30, 1);
  p.negatives = {};
  for (int32_t c = 0; c < 30; ++c) {
    p.negatives.ids.push_back((c * 7) % 30);
    p.negatives.log_expected.push_back(std::log(30 * NegativeSampler::uniform(30).probability(c)));
  }
  const Result sampled = run(p, 0.1);
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  const Variable full = head_cross_entropy(x, w, p.targets, 0.1);
  backward(full);
  EXPECT_NEAR(sampled.loss, static_cast<double>(full.value().item()), kTolerance * sampled.loss);
  expect_close(test::as_doubles(sampled.dx), test::as_doubles(x.grad()), kTolerance);
  expect_close(test::as_doubles(sampled.dw), test::as_doubles(w.grad()), kTolerance);
}

// Mean over many draws, relative to the largest element of the full gradient.
double worst_error_of_mean(Problem p, int64_t drawn, bool corrected) {
  constexpr int kRepeats = 400;
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  backward(head_cross_entropy(x, w, p.targets, 1));
  std::vector<double> mean(static_cast<size_t>(p.x.size() + p.w.size()), 0);
  const NegativeSampler sampler = NegativeSampler::log_uniform(p.w.shape()[0]);
  for (int r = 0; r < kRepeats; ++r) {
    RandomKey key = test::test_key(9);
    key.step = static_cast<uint64_t>(r);
    p.negatives = sampler.draw(drawn, key);
    if (!corrected) p.negatives.log_expected.assign(p.negatives.ids.size(), 0);
    const Result result = run(p, 1);
    for (int64_t i = 0; i < p.x.size(); ++i) mean[static_cast<size_t>(i)] += result.dx.data()[i] / kRepeats;
    for (int64_t i = 0; i < p.w.size(); ++i) mean[static_cast<size_t>(p.x.size() + i)] += result.dw.data()[i] / kRepeats;
  }
  double worst = 0;
  const auto compare = [&](const Tensor& full, int64_t begin) {
    double largest = 0;
    for (int64_t i = 0; i < full.size(); ++i) largest = std::max(largest, std::abs(static_cast<double>(full.data()[i])));
    for (int64_t i = 0; i < full.size(); ++i)
      worst = std::max(worst, std::abs(mean[static_cast<size_t>(begin + i)] - static_cast<double>(full.data()[i])) / largest);
  };
  compare(x.grad(), 0);
  compare(w.grad(), p.x.size());
  return worst;
}

TEST(SampledSoftmax, its_gradient_is_that_of_the_full_softmax_on_the_average) {
  const Problem p({2, 4}, 3, 25, 1);
  const double few = worst_error_of_mean(p, 8, true), many = worst_error_of_mean(p, 256, true);
  EXPECT_LT(many, 0.02);                               // what 400 means leave, and the bias
  EXPECT_LT(many, few / 2);                            // the bias falls with the number of draws
  EXPECT_GT(worst_error_of_mean(p, 256, false), 0.2);  // it is the correction that does it
}

TEST(SampledSoftmax, leaves_out_negatives_that_are_the_target) {
  Problem p({1, 2}, 3, 5, 1);
  p.targets = Ids({1, 2}, {4, 4});
  p.negatives = {.ids = {4, 4, 4}, .log_expected = {0, 0, 0}};
  const Result result = run(p, 1);
  EXPECT_EQ(result.loss, 0);  // nothing is left to tell the target from
  expect_close(test::as_doubles(result.dx), std::vector<double>(6, 0), 0);
  expect_close(test::as_doubles(result.dw), std::vector<double>(15, 0), 0);
}

TEST(SampledSoftmax, gives_a_gradient_to_the_rows_of_targets_and_negatives_alone) {
  Problem p({2, 3}, 4, 1000, 10);
  p.targets[0] = kIgnored;
  std::set<int32_t> read(p.negatives.ids.begin(), p.negatives.ids.end());
  for (int64_t i = 1; i < p.targets.size(); ++i) read.insert(p.targets[i]);
  EXPECT_EQ(run(p, 1).rows, std::vector<int32_t>(read.begin(), read.end()));
}

TEST(SampledSoftmax, without_counted_targets_all_is_zero) {
  Problem p({1, 3}, 4, 9, 6);
  for (int32_t& t : p.targets.values()) t = kIgnored;
  const Result result = run(p, 1);
  EXPECT_EQ(result.loss, 0);
  EXPECT_EQ(result.stats.counted, 0);
  expect_close(test::as_doubles(result.dx), std::vector<double>(12, 0), 0);
  expect_close(test::as_doubles(result.dw), std::vector<double>(36, 0), 0);
}

TEST(SampledSoftmax, a_logit_that_is_not_finite_makes_the_loss_not_finite) {
  for (const Real bad :
       {std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity(), std::numeric_limits<Real>::quiet_NaN()}) {
    Problem p({1, 3}, 4, 9, 6);
    p.x.data()[5] = bad;
    HeadStats stats;
    sampled_softmax(Variable(p.x), Variable(p.w), p.targets, p.negatives, 1, &stats);
    EXPECT_FALSE(std::isfinite(stats.loss_sum));
  }
}

TEST(SampledSoftmax, same_bits_for_any_thread_count) {
  const Problem p({3, 50}, 33, 400, 90);
  EXPECT_TRUE(test::same_bits_for_any_thread_count([&] {
    const Result r = run(p, 0.01);
    return std::vector<Tensor>{r.dx, r.dw, Tensor::scalar(static_cast<Real>(r.loss))};
  }));
}

TEST(SampledSoftmax, refuses_ids_outside_the_table_and_draws_of_nothing) {
  Problem p({1, 3}, 4, 9, 6);
  const auto loss = [&] { sampled_softmax(Variable(p.x), Variable(p.w), p.targets, p.negatives, 1); };
  EXPECT_NO_THROW(loss());
  p.negatives.ids[2] = 9;
  EXPECT_THROW(loss(), Error);
  p.negatives = {};
  EXPECT_THROW(loss(), Error);
  p.negatives = {.ids = {1}, .log_expected = {}};
  EXPECT_THROW(loss(), Error);
  p.negatives = {.ids = {1}, .log_expected = {0}};
  p.targets[1] = 9;
  EXPECT_THROW(loss(), Error);
}

}  // namespace
}  // namespace rowan

#include "core/ops/head_cross_entropy.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using test::expect_close;
using test::gradcheck;
using test::random_ids;
using test::random_tensor;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr double kTolerance = kRealIsDouble ? 1e-13 : 3e-6;

struct Plain {
  std::vector<double> dx, dw, token_loss, log_sum_exp;
  double loss_sum = 0;
  int64_t counted = 0;
};

// All the logits, in double.
Plain plain_head(const Tensor& x, const Tensor& w, const Ids& targets, double scale) {
  const int64_t v = w.shape()[0], d = w.shape()[1], n = targets.size();
  Plain out{std::vector<double>(static_cast<size_t>(n * d)), std::vector<double>(static_cast<size_t>(v * d)), {}, {}};
  std::vector<double> z(static_cast<size_t>(v));
  const auto at = [d](const Tensor& t, int64_t i, int64_t k) { return static_cast<double>(t.data()[i * d + k]); };
  for (int64_t i = 0; i < n; ++i) {
    if (targets[i] == kIgnored) {
      out.token_loss.push_back(0);
      out.log_sum_exp.push_back(0);
      continue;
    }
    double largest = -INFINITY, total = 0;
    for (int64_t j = 0; j < v; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < d; ++k) sum += at(x, i, k) * at(w, j, k);
      z[static_cast<size_t>(j)] = sum;
      largest = std::max(largest, sum);
    }
    for (double logit : z) total += std::exp(logit - largest);
    out.log_sum_exp.push_back(largest + std::log(total));
    out.token_loss.push_back(out.log_sum_exp.back() - z[static_cast<size_t>(targets[i])]);
    out.loss_sum += out.token_loss.back();
    ++out.counted;
    for (int64_t j = 0; j < v; ++j) {
      const double dz = scale * (std::exp(z[static_cast<size_t>(j)] - out.log_sum_exp.back()) - (j == targets[i] ? 1 : 0));
      for (int64_t k = 0; k < d; ++k) {
        out.dx[static_cast<size_t>(i * d + k)] += dz * at(w, j, k);
        out.dw[static_cast<size_t>(j * d + k)] += dz * at(x, i, k);
      }
    }
  }
  return out;
}

struct Problem {
  Tensor x, w;
  Ids targets;
  Problem(const Shape& ids, int64_t d, int64_t v, int every_ignored = 0)
      : x(random_tensor({ids[0], ids[1], d}, 1)), w(random_tensor({v, d}, 2, 0.3)), targets(random_ids(ids, v, 3)) {
    for (int64_t i = 0; every_ignored && i < targets.size(); i += every_ignored) targets[i] = kIgnored;
  }
};

void check_against_plain_loops(const Problem& p, double scale) {
  const Plain expected = plain_head(p.x, p.w, p.targets, scale);
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  std::vector<float> token_loss, log_sum_exp;
  HeadStats stats{.token_loss = &token_loss, .log_sum_exp = &log_sum_exp};
  const Variable loss = head_cross_entropy(x, w, p.targets, scale, &stats);
  EXPECT_NEAR(loss.value().item(), scale * expected.loss_sum, kTolerance * scale * expected.loss_sum);
  EXPECT_NEAR(stats.loss_sum, expected.loss_sum, kTolerance * expected.loss_sum);
  EXPECT_EQ(stats.counted, expected.counted);
  expect_close(token_loss, expected.token_loss, 3e-6, "token losses");
  expect_close(log_sum_exp, expected.log_sum_exp, 3e-6, "log-sum-exp");
  backward(loss);
  expect_close(x.grad(), expected.dx, kTolerance, "dx");
  expect_close(w.grad(), expected.dw, kTolerance, "dW");
}

TEST(HeadCrossEntropy, agrees_with_plain_loops) {
  const Threads threads(2);
  check_against_plain_loops(Problem({1, 1}, 1, 1), 1);
  check_against_plain_loops(Problem({1, 1}, 3, 2), 0.5);
  check_against_plain_loops(Problem({3, 5}, 7, 13, 4), 0.25);
  check_against_plain_loops(Problem({2, 70}, 31, 65, 3), 1.0 / 140);
  check_against_plain_loops(Problem({4, 16}, 24, 1009, 5), 0.01);
}

TEST(HeadCrossEntropy, chunks_add_up_to_the_whole) {
  const Threads threads(2);
  const int64_t v = detail::kHeadBuffer / detail::kHeadFewestRows;
  ASSERT_EQ(detail::head_chunk(130, v), 48);
  Problem p({1, 130}, 2, v);
  for (int64_t i = 0; i < 60; ++i) p.targets[i] = kIgnored;  // the whole first chunk and a part of the second
  check_against_plain_loops(p, 1.0 / 70);
}

TEST(HeadCrossEntropy, a_chunk_is_bounded_covers_small_problems_and_is_even) {
  EXPECT_EQ(detail::head_chunk(768, 65), 768);
  EXPECT_EQ(detail::head_chunk(256, 50257), 256);
  EXPECT_EQ(detail::head_chunk(1024, 50257), 256);
  EXPECT_EQ(detail::head_chunk(1000, 1 << 27), 64);
  EXPECT_EQ(detail::head_chunk(0, 65), 0);
  for (int64_t n : {1, 63, 500, 4096, 100000})
    for (int64_t v : {2, 65, 5000, 50257})
      EXPECT_LE(detail::head_chunk(n, v) * v,
                std::max(detail::kHeadBuffer, detail::kHeadFewestRows * v) + detail::kHeadRowStep * v);
}

TEST(HeadCrossEntropy, gradients_agree_with_differences) {
  for (const auto& [ids, d, v, ignored] :
       {std::tuple<Shape, int64_t, int64_t, int>{{1, 1}, 1, 2, 0}, {{2, 3}, 4, 5, 0}, {{1, 7}, 3, 11, 3}, {{3, 3}, 5, 2, 2}}) {
    const Problem p(ids, d, v, ignored);
    // gradcheck weighs the loss with a number of its own: backward is checked with d loss other than 1 too.
    EXPECT_TRUE(gradcheck([&](const auto& in) { return head_cross_entropy(in[0], in[1], p.targets, 0.3); }, {p.x, p.w}));
    for (size_t constant : {0, 1}) {
      std::vector<bool> constants(2, false);
      constants[constant] = true;
      EXPECT_TRUE(gradcheck([&](const auto& in) { return head_cross_entropy(in[0], in[1], p.targets, 0.3); }, {p.x, p.w},
                            {.constant = constants}));
    }
  }
}

TEST(HeadCrossEntropy, nothing_counted_means_zero_loss_and_gradients) {
  Problem p({2, 3}, 4, 5);
  for (int64_t i = 0; i < 6; ++i) p.targets[i] = kIgnored;
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  HeadStats stats;
  const Variable loss = head_cross_entropy(x, w, p.targets, 1, &stats);
  EXPECT_EQ(loss.value().item(), 0);
  EXPECT_EQ(stats.counted, 0);
  backward(loss);
  EXPECT_THAT(x.grad().values(), Each(Real(0)));
  EXPECT_THAT(w.grad().values(), Each(Real(0)));
}

TEST(HeadCrossEntropy, large_logits_are_exact_and_do_not_overflow) {
  Tensor x = Tensor::full({1, 1}, 1), w = Tensor::from({3, 1}, std::vector<Real>{10000, 9999, -10000});
  HeadStats stats;
  head_cross_entropy(Variable(x), Variable(w), Ids({1, 1}, {1}), 1, &stats);
  EXPECT_NEAR(stats.loss_sum, 1 + std::log1p(std::exp(-1.0)), kRealIsDouble ? 1e-12 : 1e-6);
  head_cross_entropy(Variable(x), Variable(w), Ids({1, 1}, {2}), 1, &stats);
  EXPECT_NEAR(stats.loss_sum, 20000 + std::log1p(std::exp(-1.0)), 1e-3);
}

TEST(HeadCrossEntropy, a_logit_that_is_not_finite_makes_the_loss_not_finite_wherever_it_stands) {
  for (Real bad :
       {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity()})
    for (int64_t place : {0, 7, 20}) {
      Tensor w = random_tensor({21, 1}, 1);
      w.data()[place] = bad;
      const Variable loss = head_cross_entropy(Variable(Tensor::full({1, 1}, 1)), Variable(w), Ids({1, 1}, {7}), 1);
      EXPECT_FALSE(std::isfinite(loss.value().item())) << bad << " at " << place;
    }
}

TEST(HeadCrossEntropy, without_a_tape_it_makes_no_gradients) {
  const Problem p({2, 40}, 32, 4099);
  const Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  const NoGrad off;
  reset_pool_peak();
  const int64_t before = pool_stats().peak_bytes_in_use;
  const Variable loss = head_cross_entropy(x, w, p.targets, 1.0 / 80);
  const int64_t logits = 80 * 4099 * static_cast<int64_t>(sizeof(Real));
  EXPECT_LT(pool_stats().peak_bytes_in_use - before, logits * 5 / 4 + 4096);
  EXPECT_FALSE(loss.needs_grad());
  EXPECT_NEAR(loss.value().item(), plain_head(p.x, p.w, p.targets, 1.0 / 80).loss_sum / 80, 1e-5);
}

TEST(HeadCrossEntropy, hands_its_gradient_over_without_a_second_buffer) {
  const Problem p({2, 4}, 64, 5000);
  Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
  const Variable loss = head_cross_entropy(x, w, p.targets, 1);
  reset_pool_peak();
  const int64_t before = pool_stats().peak_bytes_in_use;
  backward(loss);
  EXPECT_LT(pool_stats().peak_bytes_in_use - before, 5000 * 64 * static_cast<int64_t>(sizeof(Real)) / 2);
}

TEST(HeadCrossEntropy, gives_the_same_bits_for_any_number_of_threads) {
  EXPECT_TRUE(test::same_bits_for_any_thread_count([] {
    const Problem p({2, 100}, 48, 2003, 7);
    Variable x = Variable::leaf(p.x), w = Variable::leaf(p.w);
    const Variable loss = head_cross_entropy(x, w, p.targets, 0.005);
    const Tensor value = loss.value();
    backward(loss);
    return std::vector<Tensor>{value, x.grad(), w.grad()};
  }));
}

TEST(HeadCrossEntropy, refuses_what_does_not_fit_and_changes_nothing) {
  const auto message = [](const Tensor& x, const Variable& w, const Ids& targets) -> std::string {
    HeadStats stats{.loss_sum = 42};
    try {
      head_cross_entropy(Variable(x), w, targets, 1, &stats);
    } catch (const Error& e) {
      EXPECT_EQ(stats.loss_sum, 42);
      return e.what();
    }
    return "no error";
  };
  const Problem p({2, 3}, 4, 5);
  EXPECT_EQ(message(p.x, Variable(p.w), Ids({2, 3}, {0, 1, 2, 3, 4, 5})),
            "[head_cross_entropy] id 5 at position (1, 2) is outside [-1, 5)");
  EXPECT_EQ(message(p.x, Variable(p.w), Ids({2, 3}, {0, -2, 2, 3, 4, 0})),
            "[head_cross_entropy] id -2 at position (0, 1) is outside [-1, 5)");
  EXPECT_EQ(message(p.x, Variable(random_tensor({5, 3}, 1)), p.targets), "[head_cross_entropy] x has width 4 but weight is (5, 3)");
  EXPECT_EQ(message(p.x, Variable(p.w), Ids({2}, {0, 1})), "[head_cross_entropy] 2 targets for x of shape (2, 3, 4)");
  EXPECT_THAT(message(p.x, Variable::leaf(p.w, GradKind::kRowSparse), p.targets), HasSubstr("row-sparse"));
}

TEST(HeadLogits, agree_with_plain_loops_and_keep_the_leading_dimensions) {
  const Tensor x = random_tensor({2, 1, 7}, 1), w = random_tensor({11, 7}, 2);
  const Tensor z = head_logits(x, w);
  EXPECT_EQ(z.shape(), (Shape{2, 1, 11}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 11; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < 7; ++k) sum += static_cast<double>(x.data()[i * 7 + k]) * static_cast<double>(w.data()[j * 7 + k]);
      EXPECT_NEAR(z.data()[i * 11 + j], sum, 1e-5);
    }
}

// A head that trains by sampled softmax is evaluated by the full one.
TEST(HeadCrossEntropy, takes_a_row_sparse_weight_when_no_gradient_is_wanted) {
  const Problem p({2, 3}, 4, 7);
  const Variable w = Variable::leaf(p.w, GradKind::kRowSparse);
  EXPECT_THROW(head_cross_entropy(Variable(p.x), w, p.targets, 1), Error);
  const NoGrad no_grad;
  HeadStats sparse, dense;
  head_cross_entropy(Variable(p.x), w, p.targets, 1, &sparse);
  head_cross_entropy(Variable(p.x), Variable(p.w), p.targets, 1, &dense);
  EXPECT_EQ(sparse.loss_sum, dense.loss_sum);
}

}  // namespace
}  // namespace rowan

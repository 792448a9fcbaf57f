// Rules against PyTorch (1.13, float64) where it has them, else against the formula as a plain loop in double over one table.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

constexpr double kTolerance = kRealIsDouble ? 1e-12 : 3e-6;
using Row = std::vector<double>;

Row gradient_at(int s) {
  return {0.3 * s, -1.0, 0.2 * s * s, 0.7 / s};
}

// Five steps on the table {{1, -2}, {.5, 3}} with lr 0.1.
Row after_five_steps(const std::string& rule, test::FieldValues fields) {
  fields["lr"] = 0.1;
  const auto optimizer = test::make_rule(rule, fields);
  Parameter w(Tensor::from({2, 2}, std::vector<Real>{1, -2, Real(0.5), 3}));
  for (int s = 1; s <= 5; ++s) {
    const Row g = gradient_at(s);
    test::give_dense_grad(w, Tensor::from({2, 2}, std::vector<Real>(g.begin(), g.end())));
    optimizer->step("w", w, {.step = s});
  }
  return test::as_doubles(w.value());
}

// The same by a function of a row: row(w, g, t), called for row 0 and row 1, which hold their state by index.
Row by_rows(const std::function<void(size_t i, Row& w, const Row& g, int t)>& update) {
  Row a = {1, -2}, b = {0.5, 3};
  for (int t = 1; t <= 5; ++t) {
    const Row g = gradient_at(t);
    update(0, a, {g[0], g[1]}, t);
    update(1, b, {g[2], g[3]}, t);
  }
  return {a[0], a[1], b[0], b[1]};
}

double norm(const Row& x) {
  return std::hypot(x[0], x[1]);
}
double mean_square(const Row& x) {
  return (x[0] * x[0] + x[1] * x[1]) / 2;
}

TEST(Rules, adagrad_is_torchs) {
  test::expect_close(after_five_steps("adagrad", {}),
                     Row{0.589929247807219, -1.67683293543522, 0.04713263398064951, 2.789222617071974}, kTolerance);
  test::expect_close(after_five_steps("adagrad", {{"weight_decay", 0.05}, {"initial_accumulator", 0.2}}),
                     Row{0.6543650968600891, -1.6910413672498494, 0.11749025800403874, 2.783105596548985}, kTolerance);
}

TEST(Rules, rmsprop_is_torchs) {
  test::expect_close(after_five_steps("rmsprop", {{"alpha", 0.9}}),
                     Row{-0.32278061444875716, -0.9354712958066425, -0.9462105381680244, 2.299803095334006}, kTolerance);
  test::expect_close(after_five_steps("rmsprop", {{"alpha", 0.9}, {"momentum", 0.8}}),
                     Row{-2.191351641195086, 0.6721867151811619, -2.9301418685257388, 1.0629413409501036}, kTolerance);
}

TEST(Rules, adam_and_amsgrad_are_torchs) {
  const test::FieldValues betas = {{"beta1", 0.8}, {"beta2", 0.95}};
  test::FieldValues decayed = betas;
  decayed["weight_decay"] = 0.05;
  test::expect_close(after_five_steps("adam", decayed),
                     Row{0.5019998347887388, -1.500325591377815, 0.03130246220949147, 2.547336501052379}, kTolerance);
  test::expect_close(after_five_steps("amsgrad", betas),
                     Row{0.5043251532039008, -1.500000005, 0.03331989958970334, 2.5719265424869118}, kTolerance);
}

TEST(Rules, rowwise_adagrad_sums_the_mean_square_of_a_row) {
  Row h(2, 0);
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int) {
    h[i] += mean_square(g);
    for (size_t j : {0, 1}) w[j] -= 0.1 * g[j] / (std::sqrt(h[i]) + 1e-8);
  });
  test::expect_close(after_five_steps("rowwise_adagrad", {}), expected, kTolerance);
}

struct Moments {
  Row m[2] = {{0, 0}, {0, 0}}, v[2] = {{0, 0}, {0, 0}};
  double c1 = 0, c2 = 0;
  void take(size_t i, const Row& g, int t, double beta1 = 0.9, double beta2 = 0.999) {
    for (size_t j : {0, 1}) {
      m[i][j] = beta1 * m[i][j] + (1 - beta1) * g[j];
      v[i][j] = beta2 * v[i][j] + (1 - beta2) * g[j] * g[j];
    }
    c1 = 1 - std::pow(beta1, t);
    c2 = 1 - std::pow(beta2, t);
  }
};

TEST(Rules, nadam_looks_ahead) {
  Moments s;
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int t) {
    s.take(i, g, t);
    for (size_t j : {0, 1})
      w[j] -= 0.1 * (0.9 * s.m[i][j] / (1 - std::pow(0.9, t + 1)) + 0.1 * g[j] / s.c1) / (std::sqrt(s.v[i][j] / s.c2) + 1e-8);
  });
  test::expect_close(after_five_steps("nadam", {}), expected, kTolerance);
}

TEST(Rules, partial_rowwise_adam_has_one_second_moment_a_row) {
  Moments s;
  Row v(2, 0);
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int t) {
    s.take(i, g, t);
    v[i] = 0.999 * v[i] + 0.001 * mean_square(g);
    for (size_t j : {0, 1}) w[j] = w[j] * (1 - 0.1 * 0.05) - 0.1 * s.m[i][j] / s.c1 / (std::sqrt(v[i] / s.c2) + 1e-8);
  });
  test::expect_close(after_five_steps("partial_rowwise_adam", {{"weight_decay", 0.05}}), expected, kTolerance);
}

TEST(Rules, lamb_scales_a_rows_step_by_its_norm) {
  Moments s;
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int t) {
    s.take(i, g, t);
    Row u(2);
    for (size_t j : {0, 1}) u[j] = s.m[i][j] / s.c1 / (std::sqrt(s.v[i][j] / s.c2) + 1e-6) + 0.05 * w[j];
    const double ratio = norm(w) / norm(u);
    for (size_t j : {0, 1}) w[j] -= 0.1 * ratio * u[j];
  });
  test::expect_close(after_five_steps("lamb", {{"weight_decay", 0.05}}), expected, 3 * kTolerance);
}

TEST(Rules, lars_scales_a_rows_rate_by_the_ratio_of_norms) {
  Row b[2] = {{0, 0}, {0, 0}};
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int) {
    const double local = 0.02 * norm(w) / (norm(g) + 0.05 * norm(w));
    for (size_t j : {0, 1}) b[i][j] = 0.9 * b[i][j] + 0.1 * local * (g[j] + 0.05 * w[j]);
    for (size_t j : {0, 1}) w[j] -= b[i][j];
  });
  test::expect_close(after_five_steps("lars", {{"weight_decay", 0.05}}), expected, kTolerance);
}

TEST(Rules, trust_ratios_are_one_when_a_norm_is_zero) {
  for (const char* rule : {"lamb", "lars"}) {
    Parameter p(Tensor::zeros({2, 2}));
    const auto r = test::make_rule(rule, {{"lr", 0.1}});
    test::give_dense_grad(p, Tensor::from({2, 2}, std::vector<Real>{1, 1, 0, 0}));
    r->step("p", p, {.step = 1});
    EXPECT_LT(p.value().data()[0], -0.05) << rule << ": a row of zeros must be able to leave 0";
    EXPECT_EQ(p.value().data()[2], 0) << rule;
  }
}

TEST(Rules, lion_moves_by_the_sign) {
  Row m[2] = {{0, 0}, {0, 0}};
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int) {
    for (size_t j : {0, 1}) {
      const double c = 0.9 * m[i][j] + 0.1 * g[j];
      w[j] = w[j] * (1 - 0.1 * 0.05) - 0.1 * (c > 0 ? 1 : -1);
      m[i][j] = 0.99 * m[i][j] + 0.01 * g[j];
    }
  });
  test::expect_close(after_five_steps("lion", {{"weight_decay", 0.05}}), expected, kTolerance);
}

// The paper's own terms, z not scaled by lr, starting from z that stands for the initial weights.
TEST(Rules, ftrl_is_the_papers_at_a_constant_rate) {
  const double lr = 0.1, beta = 1, l1 = 0.7, l2 = 0.3;
  Row z[2] = {{0, 0}, {0, 0}}, n[2] = {{0, 0}, {0, 0}};
  const Row expected = by_rows([&](size_t i, Row& w, const Row& g, int t) {
    for (size_t j : {0, 1}) {
      if (t == 1) z[i][j] = -w[j] * (beta / lr + l2) - (w[j] > 0 ? l1 : -l1);
      const double sigma = (std::sqrt(n[i][j] + g[j] * g[j]) - std::sqrt(n[i][j])) / lr;
      z[i][j] += g[j] - sigma * w[j];
      n[i][j] += g[j] * g[j];
      w[j] = std::abs(z[i][j]) <= l1 ? 0 : ((z[i][j] > 0 ? l1 : -l1) - z[i][j]) / ((beta + std::sqrt(n[i][j])) / lr + l2);
    }
  });
  test::expect_close(after_five_steps("ftrl", {{"beta", beta}, {"l1", l1}, {"l2", l2}}), expected, 3 * kTolerance);
}

TEST(Rules, ftrl_makes_weights_with_little_evidence_zero) {
  Parameter p(Tensor::from({1, 2}, std::vector<Real>{Real(0.01), 1}));
  const auto r = test::make_rule("ftrl", {{"lr", 0.1}, {"l1", 1.0}});
  test::give_dense_grad(p, Tensor::full({1, 2}, Real(0.5)));
  r->step("p", p, {.step = 1});
  EXPECT_EQ(p.value().data()[0], 0);
  EXPECT_GT(p.value().data()[1], 0.5);
}

// Rules that share columns: the whole table in a plain loop.
TEST(Rules, sm3_bounds_sums_by_rows_and_columns) {
  Row w = {1, -2, 0.5, 3}, r(2, 0), c(2, 0);
  for (int t = 1; t <= 5; ++t) {
    const Row g = gradient_at(t);
    Row next_r(2, 0), next_c = c;
    for (size_t i : {0, 1})
      for (size_t j : {0, 1}) {
        const double x = g[2 * i + j], n = std::min(r[i], c[j]) + x * x;
        w[2 * i + j] -= 0.1 * x / (std::sqrt(n) + 1e-10);
        next_r[i] = std::max(next_r[i], n);
        next_c[j] = std::max(next_c[j], n);
      }
    r = next_r;
    c = next_c;
  }
  test::expect_close(after_five_steps("sm3", {}), w, kTolerance);
}

TEST(Rules, adafactor_factors_the_second_moment) {
  Row w = {1, -2, 0.5, 3}, r(2, 0), c(2, 0);
  for (int t = 1; t <= 5; ++t) {
    const Row g = gradient_at(t);
    const double beta = 1 - std::pow(t, -0.8);
    for (size_t i : {0, 1}) r[i] = beta * r[i] + (1 - beta) * (g[2 * i] * g[2 * i] + g[2 * i + 1] * g[2 * i + 1]) / 2;
    for (size_t j : {0, 1}) c[j] = beta * c[j] + (1 - beta) * (g[j] * g[j] + g[2 + j] * g[2 + j]) / 2;
    for (size_t i : {0, 1}) {
      Row u(2);
      for (size_t j : {0, 1}) u[j] = g[2 * i + j] / std::sqrt(r[i] * c[j] / ((c[0] + c[1]) / 2));
      for (size_t j : {0, 1}) w[2 * i + j] -= 0.1 * u[j] / std::max(1.0, std::sqrt(mean_square(u)));
    }
  }
  test::expect_close(after_five_steps("adafactor", {}), w, 3 * kTolerance);
}

TEST(Rules, adam8bit_stays_near_adamw_at_a_quarter_of_the_state) {
  Parameter a(test::random_tensor({8, 256}, 1)), b(a.value().clone());
  const auto exact = test::make_rule("adamw", {{"lr", 0.01}, {"weight_decay", 0.1}}),
             packed = test::make_rule("adam8bit", {{"lr", 0.01}, {"weight_decay", 0.1}});
  for (uint32_t s = 1; s <= 30; ++s) {
    const Tensor g = test::random_tensor({8, 256}, 100 + s, 1, 0.5);
    test::give_dense_grad(a, g);
    test::give_dense_grad(b, g);
    exact->step("p", a, {.step = s});
    packed->step("p", b, {.step = s});
  }
  double difference = 0, movement = 0;
  const Tensor start = test::random_tensor({8, 256}, 1);
  for (int64_t i = 0; i < a.value().size(); ++i) {
    difference += std::abs(static_cast<double>(a.value().data()[i] - b.value().data()[i]));
    movement += std::abs(static_cast<double>(a.value().data()[i] - start.data()[i]));
  }
  EXPECT_LT(difference, 0.05 * movement);
  EXPECT_LT(packed->state_bytes("p") * (kRealIsDouble ? 6 : 3), exact->state_bytes("p"));
}

// One row, touched at steps 1 and 4, in the published formula.
TEST(Rules, smart_decay_adam_catches_up_at_the_next_update) {
  Parameter p(Tensor::full({2, 1}, 1), GradKind::kRowSparse);
  const auto rule = test::make_rule("smart_decay_adam", {{"lr", 0.1}});
  for (int s = 1; s <= 4; ++s) {
    const bool touch = s == 1 || s == 4;
    test::give_row_grad(p, touch ? std::vector<int32_t>{0, 1} : std::vector<int32_t>{1}, Tensor::full({touch ? 2 : 1, 1}, 2));
    rule->step("p", p, {.step = s});
  }
  double m = 0.1 * 2, v = 0.001 * 4, w = 1 - 0.1 * m / (std::sqrt(v) + 1e-5);
  const double missed = m * 0.9 * (1 - std::pow(0.9, 2)) / 0.1;
  m = std::pow(0.9, 3) * m + 0.1 * 2;
  v = std::pow(0.999, 3) * v + 0.001 * 4;
  w -= 0.1 * (m + missed) / (std::sqrt(v) + 1e-5);
  EXPECT_NEAR(p.value().data()[0], w, 1e-6);
}

// Occurrences after the first of a step missed nothing, whatever beta1.
TEST(Rules, smart_decay_adam_takes_single_occurrences_one_after_the_other) {
  for (const double beta1 : {0.0, 0.9}) {
    Parameter p(Tensor::full({2, 1}, 1), GradKind::kRowSparse);
    const auto rule =
        test::make_rule("smart_decay_adam", {{"lr", 0.1}, {"beta1", beta1}, {"duplicates", std::string("sequential")}});
    rule->prepare("p", p);
    test::give_row_grad(p, {1, 1, 1}, Tensor::full({3, 1}, 1));
    rule->step("p", p, {.step = 1});
    double m = 0, v = 0, w = 1;
    for (int i = 0; i < 3; ++i) {
      m = beta1 * m + (1 - beta1);
      v = 0.999 * v + 0.001;
      w -= 0.1 * m / (std::sqrt(v) + 1e-5);
    }
    EXPECT_NEAR(p.value().data()[1], w, 1e-5) << beta1;
  }
}

}  // namespace
}  // namespace rowan

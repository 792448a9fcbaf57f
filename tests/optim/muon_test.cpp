// Newton-Schulz against matrices whose singular values and vectors are known, and muon against its formula in plain double loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "optim/newton_schulz.h"
#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using Matrix = std::vector<std::vector<double>>;  // by rows

Matrix matrix_of(const Tensor& t) {
  Matrix out(static_cast<size_t>(t.shape()[0]));
  for (int64_t i = 0; i < t.shape()[0]; ++i)
    for (Real x : t.row(i)) out[static_cast<size_t>(i)].push_back(static_cast<double>(x));
  return out;
}

Tensor tensor_of(const Matrix& m) {
  std::vector<Real> values;
  for (const auto& row : m)
    for (double x : row) values.push_back(static_cast<Real>(x));
  return Tensor::from({std::ssize(m), std::ssize(m[0])}, values);
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.size(), std::vector<double>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b[0].size(); ++j)
      for (size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix t(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  return t;
}

// `count` orthonormal rows of length n, by Gram and Schmidt.
Matrix orthonormal(size_t count, size_t n, uint32_t site) {
  Matrix rows(count, std::vector<double>(n));
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < n; ++j) rows[i][j] = random_normal(test::test_key(site), i * n + j);
    for (int twice = 0; twice < 2; ++twice)
      for (size_t k = 0; k < i; ++k) {
        double dot = 0;
        for (size_t j = 0; j < n; ++j) dot += rows[i][j] * rows[k][j];
        for (size_t j = 0; j < n; ++j) rows[i][j] -= dot * rows[k][j];
      }
    double square = 0;
    for (double x : rows[i]) square += x * x;
    for (double& x : rows[i]) x /= std::sqrt(square);
  }
  return rows;
}

// U diag(s) V^T with the singular values given.
Matrix with_singular_values(const std::vector<double>& s, size_t m, size_t n) {
  Matrix left = transposed(orthonormal(s.size(), m, 1));
  for (auto& row : left)
    for (size_t k = 0; k < s.size(); ++k) row[k] *= s[k];
  return product(left, orthonormal(s.size(), n, 2));
}

// The iteration as published, on one singular value.
double iterate(double s, int steps) {
  for (int i = 0; i < steps; ++i) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
  return s;
}

class NewtonSchulz : public ::testing::TestWithParam<std::pair<size_t, size_t>> {};

TEST_P(NewtonSchulz, maps_singular_values_and_keeps_singular_vectors) {
  const auto [m, n] = GetParam();
  const std::vector<double> s = {3, 2, 0.5, 0.1, 0.02};
  double norm = 0;
  for (double value : s) norm += value * value;
  for (const int steps : {1, 3, 5}) {
    std::vector<double> mapped;
    for (double value : s) mapped.push_back(iterate(value / std::sqrt(norm), steps));
    Tensor x = tensor_of(with_singular_values(s, m, n));
    newton_schulz(x, steps);
    const Tensor expected = tensor_of(with_singular_values(mapped, m, n));
    test::expect_close(test::as_doubles(x), test::as_doubles(expected), kRealIsDouble ? 1e-6 : 2e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NewtonSchulz,
                         ::testing::Values(std::pair{5, 5}, std::pair{5, 40}, std::pair{40, 5}, std::pair{130, 70}));

TEST(NewtonSchulz, five_steps_bring_all_but_tiny_singular_values_near_one) {
  std::vector<double> s;
  for (int i = 0; i < 24; ++i) s.push_back(std::pow(0.8, i));  // 1 to 0.006 of the largest
  const Matrix g = with_singular_values(s, 24, 60);
  Tensor x = tensor_of(g);
  newton_schulz(x, 5);
  const Matrix gram = product(matrix_of(x), transposed(matrix_of(x)));
  double trace = 0, square = 0;
  for (size_t i = 0; i < 24; ++i) {
    trace += gram[i][i];
    for (size_t j = 0; j < 24; ++j) square += gram[i][j] * gram[i][j];
  }
  EXPECT_GT(trace / 24, 0.68 * 0.68);  // the mean of squared singular values
  EXPECT_LT(trace / 24, 1.21 * 1.21);
  EXPECT_LT(square / 24, std::pow(1.21, 4));
}

TEST(NewtonSchulz, leaves_zeros_and_refuses_what_is_no_matrix) {
  Tensor zeros = Tensor::zeros({3, 4}), vector = Tensor::zeros({4});
  newton_schulz(zeros, 5);
  EXPECT_TRUE(test::same_bits(zeros, Tensor::zeros({3, 4})));
  EXPECT_THROW(newton_schulz(vector, 5), Error);
}

TEST(NewtonSchulz, counts_its_products) {
  EXPECT_EQ(newton_schulz_flops({3, 10}, 1), 2.0 * 3 * 3 * 10 + 2.0 * 3 * 3 * 3 + 2.0 * 3 * 3 * 10);
  EXPECT_EQ(newton_schulz_flops({10, 3}, 5), 5 * newton_schulz_flops({3, 10}, 1));
}

// --- the rule

// As published, with plain loops in double.
struct PlainMuon {
  double lr = 0.02, momentum = 0.95, decay = 0, scale = 1;
  bool nesterov = true;
  Matrix b = {};

  void step(Matrix& w, const Matrix& g, double factor, double grad_scale) {
    const size_t m = w.size(), n = w[0].size();
    if (b.empty()) b.assign(m, std::vector<double>(n));
    Matrix x = b;
    double norm = 0;
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) {
        const double gij = grad_scale * g[i][j];
        b[i][j] = momentum * b[i][j] + (1 - momentum) * gij;
        x[i][j] = nesterov ? momentum * b[i][j] + (1 - momentum) * gij : b[i][j];
        norm += x[i][j] * x[i][j];
      }
    for (auto& row : x)
      for (double& value : row) value /= std::sqrt(norm) + 1e-7;
    for (int k = 0; k < 5; ++k) {
      const Matrix a = product(x, transposed(x)), aa = product(a, a);
      Matrix poly = a;
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < m; ++j) poly[i][j] = -4.7750 * a[i][j] + 2.0315 * aa[i][j];
      const Matrix px = product(poly, x);
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) x[i][j] = 3.4445 * x[i][j] + px[i][j];
    }
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) w[i][j] = (1 - lr * factor * decay) * w[i][j] - lr * factor * scale * x[i][j];
  }
};

void expect_follows(PlainMuon plain, const Shape& shape, test::FieldValues fields) {
  fields["lr"] = plain.lr;
  const auto rule = test::make_rule("muon", fields);
  Parameter p(test::random_tensor(shape, 1));
  Matrix w = matrix_of(p.value());
  for (uint32_t s = 1; s <= 6; ++s) {
    const Tensor g = test::random_tensor(shape, 10 + s);
    test::give_dense_grad(p, g);
    rule->step("p", p, {.step = s, .lr_factor = 1.0 / s, .grad_scale = 0.3});
    plain.step(w, matrix_of(g), 1.0 / s, 0.3);
  }
  test::expect_close(test::as_doubles(p.value()), test::as_doubles(tensor_of(w)), kRealIsDouble ? 1e-9 : 2e-4);
}

TEST(Muon, follows_its_formula) {
  expect_follows({.scale = 1}, {4, 6}, {});
  expect_follows({.lr = 0.1, .scale = std::sqrt(3.0)}, {12, 4}, {});
  expect_follows({.momentum = 0.8, .nesterov = false}, {5, 5}, {{"momentum", 0.8}, {"nesterov", false}});
}
TEST(Muon, decays_weights_apart_from_the_update) {
  expect_follows({.decay = 0.5}, {4, 6}, {{"weight_decay", 0.5}});
}
TEST(Muon, scales_to_the_size_of_adamws_updates) {
  expect_follows({.scale = 0.2 * std::sqrt(12.0)}, {4, 12}, {{"scale", std::string("rms")}});
}

std::string refusal(Parameter p) {
  try {
    make_optimizer("muon")->prepare("layer.weight", p);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Muon, refuses_vectors_and_row_sparse_tables_by_name) {
  EXPECT_THAT(refusal(Parameter(Tensor::zeros({4}))), ::testing::HasSubstr("'layer.weight' (4) is no matrix"));
  EXPECT_THAT(refusal(Parameter(Tensor::zeros({4, 2}), GradKind::kRowSparse)), ::testing::HasSubstr("row-sparse"));
  EXPECT_EQ(refusal(Parameter(Tensor::zeros({4, 2}))), "");
}

}  // namespace
}  // namespace rowan

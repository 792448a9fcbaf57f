#include "core/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/parallel.h"
#include "core/rng.h"

namespace rowan {
namespace {

struct Case {
  Op op_a, op_b;
  int64_t m, n, k;
  Real alpha = 1, beta = 0;
  int64_t pad = 0;  // how much wider rows lie in memory than they are

  int64_t lda() const { return (op_a == Op::kNone ? k : m) + pad; }
  int64_t ldb() const { return (op_b == Op::kNone ? n : k) + pad; }
  int64_t ldc() const { return n + pad; }
};

std::vector<Real> random_values(int64_t n, uint64_t seed) {
  std::vector<Real> v(static_cast<size_t>(n));
  const RandomKey key{.seed = seed, .purpose = Purpose::kTest};
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<Real>(2 * random_uniform(key, i) - 1);
  return v;
}

struct Operands {
  std::vector<Real> a, b, c;
  explicit Operands(const Case& t)
      : a(random_values((t.op_a == Op::kNone ? t.m : t.k) * t.lda() + 1, 1)),
        b(random_values((t.op_b == Op::kNone ? t.k : t.n) * t.ldb() + 1, 2)),
        c(random_values(t.m * t.ldc() + 1, 3)) {}
};

std::vector<double> plain_product(const Case& t, const Operands& x) {
  std::vector<double> c(x.c.begin(), x.c.end());
  for (int64_t i = 0; i < t.m; ++i) {
    for (int64_t j = 0; j < t.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < t.k; ++p) {
        const int64_t ia = t.op_a == Op::kNone ? i * t.lda() + p : p * t.lda() + i;
        const int64_t ib = t.op_b == Op::kNone ? p * t.ldb() + j : j * t.ldb() + p;
        sum += static_cast<double>(x.a[static_cast<size_t>(ia)]) * x.b[static_cast<size_t>(ib)];
      }
      double& out = c[static_cast<size_t>(i * t.ldc() + j)];
      out = t.alpha * sum + (t.beta == 0 ? 0 : t.beta * out);
    }
  }
  return c;
}

void expect_same(const Case& t, const std::vector<Real>& actual, const std::vector<double>& expected) {
  const double tolerance = (kRealIsDouble ? 1e-15 : 4e-7) * std::sqrt(static_cast<double>(t.k) + 4) * 4;
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i << " of " << t.m << "x" << t.n << "x" << t.k
                                                   << ", transposed " << (t.op_a == Op::kTranspose) << (t.op_b == Op::kTranspose);
}

using Product = void (*)(const Case&, Operands&);
void run_parallel(const Case& t, Operands& x) {
  gemm(t.op_a, t.op_b, t.m, t.n, t.k, t.alpha, x.a.data(), t.lda(), x.b.data(), t.ldb(), t.beta, x.c.data(), t.ldc());
}
void run_serial(const Case& t, Operands& x) {
  gemm_serial(t.op_a, t.op_b, t.m, t.n, t.k, t.alpha, x.a.data(), t.lda(), x.b.data(), t.ldb(), t.beta, x.c.data(), t.ldc());
}

void check_against_plain_loops(Product product) {
  const int64_t sizes[][3] = {{1, 1, 1},  {1, 7, 5},    {5, 1, 3},    {3, 4, 0},    {2, 3, 65},   {17, 19, 23},   {1, 130, 64},
                              {64, 1, 9}, {33, 65, 31}, {401, 7, 13}, {7, 401, 13}, {96, 96, 96}, {130, 770, 40}, {770, 130, 33}};
  for (const auto& s : sizes)
    for (Op op_a : {Op::kNone, Op::kTranspose})
      for (Op op_b : {Op::kNone, Op::kTranspose})
        for (int64_t pad : {0, 3})
          for (Real beta : {Real(0), Real(1), Real(-0.5)}) {
            const Case t{op_a, op_b, s[0], s[1], s[2], beta == 0 ? Real(1) : Real(0.75), beta, pad};
            Operands x(t);
            const std::vector<double> expected = plain_product(t, x);
            product(t, x);
            expect_same(t, x.c, expected);
          }
}

TEST(Gemm, agrees_with_plain_loops_over_shapes_transposes_scales_and_leading_dimensions) {
  Threads threads(2);
  check_against_plain_loops(run_parallel);
}

TEST(GemmSerial, agrees_with_plain_loops_over_shapes_transposes_scales_and_leading_dimensions) {
  check_against_plain_loops(run_serial);
}

TEST(Gemm, beta_zero_never_reads_what_was_there) {
  for (const Case& t : {Case{Op::kNone, Op::kTranspose, 37, 41, 29}, Case{Op::kNone, Op::kNone, 130, 140, 150},
                        Case{Op::kNone, Op::kTranspose, 130, 140, 150}, Case{Op::kTranspose, Op::kNone, 1, 20, 0}}) {
    Operands x(t);
    const std::vector<double> expected = plain_product(t, x);
    for (auto product : {run_parallel, run_serial}) {
      std::fill(x.c.begin(), x.c.end() - 1, std::numeric_limits<Real>::quiet_NaN());
      product(t, x);
      expect_same(t, x.c, expected);
    }
  }
}

TEST(Gemm, empty_products_leave_c_or_scale_it) {
  std::vector<Real> c{1, 2, 3, 4};
  gemm(Op::kNone, Op::kNone, 0, 2, 3, 1, nullptr, 3, nullptr, 2, 0, c.data(), 2);
  gemm(Op::kNone, Op::kNone, 2, 0, 3, 1, nullptr, 3, nullptr, 1, 0, c.data(), 1);
  EXPECT_EQ(c, (std::vector<Real>{1, 2, 3, 4}));
  gemm(Op::kNone, Op::kNone, 2, 2, 0, 1, c.data(), 1, c.data(), 2, 2, c.data(), 2);
  EXPECT_EQ(c, (std::vector<Real>{2, 4, 6, 8}));
}

TEST(Gemm, gives_the_same_bits_for_any_number_of_threads) {
  for (const Case& t : {Case{Op::kNone, Op::kTranspose, 256, 768, 768}, Case{Op::kTranspose, Op::kNone, 770, 515, 257},
                        Case{Op::kNone, Op::kNone, 100, 130, 2000}, Case{Op::kNone, Op::kTranspose, 1, 5001, 64}}) {
    std::vector<Real> first;
    for (int count : {1, 2, 3, 4, 7}) {
      Threads threads(count);
      Operands x(t);
      run_parallel(t, x);
      if (first.empty()) first = x.c;
      EXPECT_EQ(first, x.c) << count << " threads, " << t.m << "x" << t.n << "x" << t.k;
    }
  }
}

TEST(Gemm, the_epilogue_sees_every_element_once_when_it_is_final) {
  for (const Case& t : {Case{Op::kNone, Op::kTranspose, 1, 1, 1}, Case{Op::kNone, Op::kTranspose, 400, 90, 11},
                        Case{Op::kNone, Op::kNone, 90, 1200, 50, 1, 1, 2}, Case{Op::kNone, Op::kNone, 5, 6, 0}}) {
    Threads threads(3);
    Operands x(t);
    std::vector<double> expected = plain_product(t, x);
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) {
        double& v = expected[static_cast<size_t>(i * t.ldc() + j)];
        v = 2 * v + static_cast<double>(i * 1000 + j);
      }
    const auto twice_plus_place = [](const void*, const GemmTile& tile) {
      for (int64_t i = 0; i < tile.rows; ++i)
        for (int64_t j = 0; j < tile.cols; ++j) {
          Real& v = tile.data[i * tile.ld + j];
          v = 2 * v + static_cast<Real>((tile.row + i) * 1000 + tile.col + j);
        }
    };
    gemm(t.op_a, t.op_b, t.m, t.n, t.k, t.alpha, x.a.data(), t.lda(), x.b.data(), t.ldb(), t.beta, x.c.data(), t.ldc(),
         {twice_plus_place, nullptr});
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(x.c[i], expected[i], 1e-6 * (1 + std::abs(expected[i])) * (kRealIsDouble ? 1e-6 : 10));
  }
}

}  // namespace
}  // namespace rowan

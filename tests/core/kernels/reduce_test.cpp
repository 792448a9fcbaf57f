#include "core/kernels/reduce.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using namespace test;

TEST(Reduce, sums_equal_plain_double_loops_for_every_length) {
  const Tensor a = random_tensor({200}, 1), b = random_tensor({200}, 2);
  double s = 0, squares = 0, product = 0;
  for (int64_t n = 0; n <= 200; ++n) {
    EXPECT_NEAR(sum(a.data(), n), s, 1e-13);
    EXPECT_NEAR(sum_of_squares(a.data(), n), squares, 1e-12);
    EXPECT_NEAR(inner_product(a.data(), b.data(), n), product, 1e-12);
    if (n == 200) break;
    const double u = static_cast<double>(a.data()[n]), v = static_cast<double>(b.data()[n]);
    s += u, squares += u * u, product += u * v;
  }
}

TEST(Reduce, squares_of_large_floats_do_not_overflow) {
  const Tensor x = Tensor::full({100}, Real(1e30));
  EXPECT_NEAR(sum_of_squares(x.data(), 100) / 1e62, 1, 1e-6);
}

TEST(Reduce, parallel_sums_have_the_same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({200003}, 3);
  std::vector<double> sums, squares;
  for (int count : {1, 2, 3, 4}) {
    const Threads threads(count);
    sums.push_back(parallel_sum(x.data(), x.size()));
    squares.push_back(parallel_sum_of_squares(x.data(), x.size()));
  }
  for (size_t k = 1; k < sums.size(); ++k) {
    EXPECT_EQ(sums[k], sums[0]);
    EXPECT_EQ(squares[k], squares[0]);
  }
  double expected = 0;
  for (Real v : x.values()) expected += static_cast<double>(v) * static_cast<double>(v);
  EXPECT_NEAR(squares[0] / expected, 1, 1e-12);
  EXPECT_EQ(parallel_sum(x.data(), 0), 0);
}

TEST(Reduce, column_sums_equal_plain_double_loops_and_are_added) {
  for (const int64_t rows : {0, 1, 3, 4, 127, 128, 129, 1000})
    for (const int64_t columns : {1, 5, 64, 67}) {
      const Tensor x = random_tensor({rows, columns}, 4);
      std::vector<double> expected(static_cast<size_t>(columns), 10);
      for (int64_t i = 0; i < x.size(); ++i) expected[static_cast<size_t>(i % columns)] += static_cast<double>(x.data()[i]);
      Tensor out = Tensor::full({columns}, 10);
      add_column_sums(x.data(), rows, columns, out.data());
      expect_close(out, expected, kRealIsDouble ? 1e-14 : 1e-6, join_text(rows, " x ", columns));
    }
}

TEST(Reduce, column_sums_of_many_rows_keep_their_precision) {
  const Tensor x = Tensor::full({100000, 3}, Real(0.1));
  Tensor out = Tensor::zeros({3});
  add_column_sums(x.data(), 100000, 3, out.data());
  const double expected = 100000 * static_cast<double>(Real(0.1));
  expect_close(out, std::vector<double>(3, expected), kRealIsDouble ? 1e-13 : 1e-6);
}

TEST(Reduce, column_sums_have_the_same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({3001, 67}, 5);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    Tensor out = Tensor::zeros({67});
    add_column_sums(x.data(), 3001, 67, out.data());
    return std::vector<Tensor>{out};
  }));
}

TEST(Reduce, max_and_shifted_exponentials_make_a_softmax_for_every_length) {
  const Tensor x = random_tensor({3000}, 6, 5);
  for (const int64_t n : {1, 2, 15, 16, 17, 33, 67, 1023, 1024, 1025, 3000}) {
    Tensor y = x.clone();
    const Real top = max_of(x.data(), n);
    EXPECT_EQ(top, *std::max_element(x.data(), x.data() + n));
    const double total = exp_shifted(y.data(), top, y.data(), n);
    double expected = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double e = std::exp(static_cast<double>(x.data()[i]) - static_cast<double>(top));
      ASSERT_NEAR(static_cast<double>(y.data()[i]), e, (kRealIsDouble ? 1e-14 : 2e-6) * e + 1e-30);
      expected += e;
    }
    EXPECT_NEAR(total / expected, 1, kRealIsDouble ? 1e-14 : 5e-7);
    EXPECT_TRUE(std::equal(y.data() + n, y.data() + 3000, x.data() + n)) << "written past the end";
  }
}

TEST(Reduce, not_a_number_and_infinities_surface_in_a_softmax) {
  for (const Real bad : {static_cast<Real>(NAN), static_cast<Real>(INFINITY)})
    for (const int64_t place : {0, 7, 19}) {
      Tensor x = random_tensor({20}, 7);
      x.data()[place] = bad;
      EXPECT_TRUE(std::isnan(exp_shifted(x.data(), max_of(x.data(), 20), x.data(), 20))) << bad << " at " << place;
    }
  Tensor masked = random_tensor({20}, 8);
  masked.data()[3] = static_cast<Real>(-INFINITY);
  EXPECT_TRUE(std::isfinite(exp_shifted(masked.data(), max_of(masked.data(), 20), masked.data(), 20)));
  EXPECT_EQ(masked.data()[3], 0);
  EXPECT_EQ(max_of(nullptr, 0), static_cast<Real>(-INFINITY));
}

}  // namespace
}  // namespace rowan

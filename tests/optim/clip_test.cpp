#include "optim/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/compare.h"
#include "tests/support/optim.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using test::give_dense_grad;
using test::give_row_grad;

TEST(GradNorm, is_the_2_norm_over_dense_and_row_sparse_gradients_together) {
  Parameter a(Tensor::zeros({2, 2})), b(Tensor::zeros({5, 2}), GradKind::kRowSparse), none(Tensor::zeros({3}));
  give_dense_grad(a, Tensor::full({2, 2}, 1));                                    // 4
  give_row_grad(b, {3, 1}, Tensor::from({2, 2}, std::vector<Real>{1, 2, 3, 1}));  // 15
  const std::vector<NamedParameter> list = {{"a", &a}, {"b", &b}, {"none", &none}};
  const GradNorm norm = global_grad_norm(list);
  EXPECT_NEAR(norm.norm, std::sqrt(19.0), 1e-12);
  EXPECT_TRUE(norm.finite);
}

TEST(GradNorm, sums_repeated_ids_before_squaring) {
  Parameter p(Tensor::zeros({4, 1}), GradKind::kRowSparse);
  give_row_grad(p, {2, 2, 2}, Tensor::from({3, 1}, std::vector<Real>{1, 2, -7}));
  give_row_grad(p, {2}, Tensor::from({1, 1}, std::vector<Real>{1}));
  EXPECT_DOUBLE_EQ(global_grad_norm(std::vector<NamedParameter>{{"p", &p}}).norm, 3.0);
}

TEST(GradNorm, agrees_with_a_plain_loop_for_odd_sizes_and_any_thread_count) {
  for (int64_t n : {1, 7, 8, 9, 65535, 65536, 200001}) {
    Parameter p(Tensor::zeros({n}));
    give_dense_grad(p, test::random_tensor({n}, static_cast<uint32_t>(n)));
    long double plain = 0;
    for (Real g : p.grad().values()) plain += static_cast<long double>(g) * g;
    double first = 0;
    for (int count : {1, 2, 3, 4}) {
      Threads threads(count);
      const double norm = global_grad_norm(std::vector<NamedParameter>{{"p", &p}}).norm;
      EXPECT_NEAR(norm / std::sqrt(static_cast<double>(plain)), 1.0, 1e-13) << n;
      if (count == 1) first = norm;
      EXPECT_EQ(norm, first) << n << " elements, " << count << " threads";
    }
  }
}

TEST(GradNorm, names_the_first_parameter_that_is_not_finite) {
  for (Real bad :
       {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity(), -std::numeric_limits<Real>::infinity()}) {
    Parameter a(Tensor::zeros({3})), b(Tensor::zeros({9, 3}), GradKind::kRowSparse), c(Tensor::zeros({70001}));
    give_dense_grad(a, Tensor::full({3}, 1));
    give_row_grad(b, {0, 4}, Tensor::full({2, 3}, 1));
    Tensor g = Tensor::full({70001}, 1);
    g.data()[70000] = bad;
    give_dense_grad(c, g);
    const std::vector<NamedParameter> list = {{"a", &a}, {"b", &b}, {"c", &c}};
    GradNorm norm = global_grad_norm(list);
    EXPECT_FALSE(norm.finite);
    EXPECT_EQ(norm.non_finite, "c");
    b.row_grad().coalesce();
    b.row_grad().row(1)[2] = bad;
    EXPECT_EQ(global_grad_norm(list).non_finite, "b");
  }
}

TEST(GradNorm, finds_an_overflow_that_only_the_sum_of_repeated_ids_has) {
  Parameter p(Tensor::zeros({4, 1}), GradKind::kRowSparse);
  const Real large = std::numeric_limits<Real>::max();
  give_row_grad(p, {2, 2}, Tensor::from({2, 1}, std::vector<Real>{large, large}));
  EXPECT_FALSE(global_grad_norm(std::vector<NamedParameter>{{"p", &p}}).finite);
}

TEST(GradNorm, scale_is_torchs_and_never_above_one) {
  GradNorm norm;
  norm.norm = 4;
  EXPECT_DOUBLE_EQ(norm.scale(1), 1 / (4 + 1e-6));
  EXPECT_DOUBLE_EQ(norm.scale(100), 1);
  EXPECT_DOUBLE_EQ(norm.scale(0), 1);  // no clipping
  norm.norm = 0;
  EXPECT_DOUBLE_EQ(norm.scale(1), 1);
}

TEST(GradNorm, without_parameters_is_zero) {
  EXPECT_EQ(global_grad_norm({}).norm, 0);
}

}  // namespace
}  // namespace rowan

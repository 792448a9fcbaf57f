#include "core/kernels/gemm_bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using test::random_tensor;
using test::same_bits;

class Bfloat16Products : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!bf16_available()) GTEST_SKIP() << "this processor or build has no bfloat16 products";
  }
};

// To 8 significant bits by the C library's rounding, ties to even.
double rounded(Real x) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(x), &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

struct Case {
  Op op_a, op_b;
  int64_t m, n, k;
  Real beta;
};

TEST_F(Bfloat16Products, are_those_of_rounded_operands_summed_in_single_precision) {
  constexpr int64_t kPad = 3;
  for (const Op op_a : {Op::kNone, Op::kTranspose})
    for (const Op op_b : {Op::kNone, Op::kTranspose})
      for (const Real beta : {Real(0), Real(1)})
        for (const auto& [m, n, k] : {std::tuple<int64_t, int64_t, int64_t>{96, 128, 96}, {101, 103, 107}, {2, 5000, 129}}) {
          const int64_t lda = (op_a == Op::kNone ? k : m) + kPad, ldb = (op_b == Op::kNone ? n : k) + kPad, ldc = n + kPad;
          const Tensor a = random_tensor({(op_a == Op::kNone ? m : k) * lda}, 1),
                       b = random_tensor({(op_b == Op::kNone ? k : n) * ldb}, 2);
          const Tensor before = random_tensor({m * ldc}, 3);
          Tensor c = before.clone();
          const GemmCall call{op_a, op_b, m, n, k, 1, a.data(), lda, b.data(), ldb, beta, c.data(), ldc};
          ASSERT_TRUE(bf16_serves(call));
          gemm_bf16(call);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < ldc; ++j) {
              double expected = static_cast<double>(before.data()[i * ldc + j]);
              if (j < n) {
                expected *= static_cast<double>(beta);
                for (int64_t p = 0; p < k; ++p)
                  expected += rounded(a.data()[op_a == Op::kNone ? i * lda + p : p * lda + i]) *
                              rounded(b.data()[op_b == Op::kNone ? p * ldb + j : j * ldb + p]);
              }
              ASSERT_NEAR(static_cast<double>(c.data()[i * ldc + j]), expected, j < n ? 2e-5 : 0)
                  << m << " x " << n << " x " << k << " at " << i << ", " << j;
            }
        }
}

TEST_F(Bfloat16Products, have_the_same_bits_for_any_number_of_threads_and_end_with_their_scope) {
  constexpr int64_t kM = 500, kN = 700, kK = 300;
  const Tensor a = random_tensor({kM, kK}, 1), b = random_tensor({kN, kK}, 2);
  const auto product = [&](MatmulPrecision precision, int count) {
    const Threads threads(count);
    Tensor c({kM, kN});
    {
      const UseMatmulPrecision scope(precision);
      gemm(Op::kNone, Op::kTranspose, kM, kN, kK, 1, a.data(), kK, b.data(), kK, 0, c.data(), kN);
    }
    return c;
  };
  const Tensor single = product(MatmulPrecision::kFloat32, 1), half = product(MatmulPrecision::kBfloat16, 1);
  EXPECT_FALSE(same_bits(single, half));
  for (int count = 2; count <= 4; ++count) EXPECT_TRUE(same_bits(product(MatmulPrecision::kBfloat16, count), half)) << count;
  EXPECT_TRUE(same_bits(product(MatmulPrecision::kFloat32, 2), single));
}

TEST_F(Bfloat16Products, pass_on_what_is_not_finite) {
  const Real inf = std::numeric_limits<Real>::infinity();
  for (const Real bad : {inf, -inf, std::numeric_limits<Real>::quiet_NaN()}) {
    Tensor a = Tensor::full({128, 128}, 1), b = Tensor::full({128, 128}, 1), c({128, 128});
    a.data()[5 * 128 + 7] = bad;
    gemm_bf16({Op::kNone, Op::kNone, 128, 128, 128, 1, a.data(), 128, b.data(), 128, 0, c.data(), 128});
    EXPECT_EQ(std::isnan(c.data()[5 * 128]), std::isnan(bad));
    if (std::isinf(bad)) {
      EXPECT_EQ(c.data()[5 * 128 + 99], bad);
    }
    EXPECT_EQ(c.data()[4 * 128], 128);
  }
}

TEST(Bfloat16, is_refused_where_the_processor_or_the_build_has_none) {
  const auto use = [] { const UseMatmulPrecision scope(MatmulPrecision::kBfloat16); };
  if (bf16_available()) {
    EXPECT_NO_THROW(use());
  } else {
    EXPECT_THROW(use(), Error);
  }
}

}  // namespace
}  // namespace rowan

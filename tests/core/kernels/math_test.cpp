#include "core/kernels/math.h"

#include <gtest/gtest.h>

#include <limits>

namespace rowan {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Every 1021st float, all magnitudes and both signs: 4.2 million values.
template <class Check>
void for_floats(float limit, Check check) {
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 1021) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (std::fabs(x) <= limit) check(x);
  }
}

TEST(FastMath, exp_is_right_to_one_and_a_half_ulp_from_underflow_to_overflow) {
  double worst = 0;
  float where = 0;
  for_floats(1e4f, [&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    const float y = fast_exp(x);
    if (exact > 3.4028236e38) {
      ASSERT_EQ(y, kInfinity) << x;
      return;
    }
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23);
    const double error = std::abs(static_cast<double>(y) - exact) / ulp;
    if (!(error <= worst)) {
      worst = error;
      where = x;
    }
  });
  EXPECT_LT(worst, 1.5) << "at " << where;
}

TEST(FastMath, exp_at_the_ends_and_of_what_is_not_a_number) {
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(-0.0f), 1.0f);
  EXPECT_EQ(fast_exp(kInfinity), kInfinity);
  EXPECT_EQ(fast_exp(-kInfinity), 0.0f);
  EXPECT_EQ(fast_exp(3e38f), kInfinity);
  EXPECT_EQ(fast_exp(-3e38f), 0.0f);
  EXPECT_TRUE(std::isnan(fast_exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(fast_exp(-std::numeric_limits<float>::quiet_NaN())));
}

TEST(FastMath, sigmoid_and_its_slope_are_right_in_both_tails) {
  for_floats(80, [](float x) {
    const double e = std::exp(-static_cast<double>(x)), value = 1 / (1 + e), slope = e / ((1 + e) * (1 + e));
    ASSERT_NEAR(fast_sigmoid(x), value, 4e-7 * value) << x;
    const Sigmoid<float> s = fast_sigmoid_with_slope(x);
    ASSERT_NEAR(s.value, value, 4e-7 * value) << x;
    ASSERT_NEAR(s.slope, slope, 6e-7 * slope) << x;
  });
  EXPECT_EQ(fast_sigmoid(kInfinity), 1.0f);
  EXPECT_EQ(fast_sigmoid(-kInfinity), 0.0f);
  for (const float x : {-1e4f, -kInfinity, 1e4f, kInfinity}) EXPECT_NEAR(fast_sigmoid_with_slope(x).slope, 0, 1e-30) << x;
  EXPECT_TRUE(std::isnan(fast_sigmoid(NAN)));
  EXPECT_TRUE(std::isnan(fast_sigmoid_with_slope(static_cast<float>(NAN)).slope));
}

TEST(FastMath, normal_distribution_is_right_absolutely_and_in_its_lower_tail) {
  for_floats(50, [](float x) {
    const double exact = 0.5 * std::erfc(-static_cast<double>(x) / std::sqrt(2.0));
    const double density = std::exp(-0.5 * static_cast<double>(x) * static_cast<double>(x)) / std::sqrt(2 * M_PI);
    const Normal<float> n = fast_normal(x);
    ASSERT_NEAR(n.below, exact, 2.5e-7) << x;
    const double relative = 5e-7 * (1 + static_cast<double>(x) * static_cast<double>(x));
    ASSERT_NEAR(n.below, exact, x > -12.5f ? relative * exact : 1e-35) << x;
    ASSERT_NEAR(n.density, density, relative * density + 1e-37) << x;
  });
  EXPECT_EQ(fast_normal(kInfinity).below, 1.0f);
  EXPECT_EQ(fast_normal(-kInfinity).below, 0.0f);
  EXPECT_TRUE(std::isnan(fast_normal(static_cast<float>(NAN)).below));
}

TEST(FastMath, double_versions_are_exact_to_rounding) {
  for (double x = -30; x < 30; x += 0.37) {
    EXPECT_EQ(fast_exp(x), std::exp(x));
    EXPECT_NEAR(fast_normal(x).below, 0.5 * std::erfc(-x / std::sqrt(2.0)), 1e-14 * (1 + x * x) * fast_normal(x).below);
    EXPECT_NEAR(fast_sigmoid_with_slope(x).slope, fast_sigmoid(x) * fast_sigmoid(-x), 1e-15);
  }
}

}  // namespace
}  // namespace rowan

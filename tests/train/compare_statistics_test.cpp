// Against published tables, closed forms and plain loops.
#include "train/compare_statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

namespace rowan {
namespace {

using Values = std::vector<double>;

// Two-sided 95 % and 99 % points of Student's t, as printed in every statistics book.
TEST(TInterval, has_the_published_quantiles) {
  const std::vector<std::array<double, 3>> table = {{1, 12.706, 63.657}, {2, 4.303, 9.925}, {4, 2.776, 4.604}, {9, 2.262, 3.250}};
  for (const auto& [freedom, t95, t99] : table) {
    Values values;  // n values, alternating around 5 but for the last when n is odd
    for (int i = 0; i <= static_cast<int>(freedom); ++i) values.push_back(5 + (i % 2 == 0 ? 1.0 : -1.0));
    const double mean = mean_of(values), error = deviation_of(values) / std::sqrt(freedom + 1);
    EXPECT_NEAR((t_interval(values, 0.95).high - mean) / error, t95, 6e-4);
    EXPECT_NEAR((mean - t_interval(values, 0.99).low) / error, t99, 6e-4);
  }
}

// With 1 degree of freedom t is Cauchy's distribution, with 2 an algebraic one: both have their tails in closed form.
TEST(TTest, has_the_closed_forms_of_one_and_two_degrees_of_freedom) {
  const Values two = {0.3, 1.1};
  const double t1 = 0.7 / 0.4;  // mean / (deviation / sqrt 2) = 0.7 / (0.8 / 2)
  EXPECT_NEAR(t_test(two), 1 - 2 / std::numbers::pi * std::atan(t1), 1e-12);
  const Values three = {0.2, 0.5, 1.1};
  const double t2 = mean_of(three) / (deviation_of(three) / std::sqrt(3.0));
  EXPECT_NEAR(t_test(three), 1 - t2 / std::sqrt(2 + t2 * t2), 1e-12);
  EXPECT_NEAR(t_test(Values{-0.2, -0.5, -1.1}), t_test(three), 1e-15) << "both sides count";
}

TEST(TTest, of_values_without_deviation) {
  EXPECT_EQ(t_test(Values{0, 0, 0}), 1);
  EXPECT_EQ(t_test(Values{0.5, 0.5, 0.5}), 0);
  EXPECT_EQ(t_interval(Values{0.5, 0.5}, 0.95), (Interval{0.5, 0.5}));
}

// Samples of one size and one variance have the degrees of freedom of both together, here 4, where t is algebraic.
TEST(Welch, has_the_closed_form_of_four_degrees_of_freedom_and_that_of_unequal_variances) {
  const Values a = {1, 2, 3}, b = {2, 3, 4};
  const double t = -1 / std::sqrt(2.0 / 3), share = std::abs(t) / std::sqrt(4 + t * t);
  EXPECT_NEAR(welch_test(a, b), 1 - share * (1 + 2 / (4 + t * t)), 1e-12);
  EXPECT_NEAR(welch_interval(a, b, 0.95).high, -1 + 2.7764 * std::sqrt(2.0 / 3), 1e-4);
  // By hand: variances 1 and 4 over 3 give an error of sqrt(5/3) and (5/3)^2 / (1/18 + 16/18) = 50/17 degrees of freedom,
  // whose 97.5 % point is 3.218759 (by Simpson's rule over the density).
  const Values wide = {0, 2, 4};
  const Interval unequal = welch_interval(a, wide, 0.95);
  EXPECT_NEAR(unequal.high, 3.218759 * std::sqrt(5.0 / 3), 1e-5);
  EXPECT_NEAR(unequal.low, -unequal.high, 1e-12);
}

TEST(Welch, does_not_depend_on_the_order_of_either_sample) {
  const Values a = {0.3, 0.9, 0.4, 0.1}, b = {0.5, 0.6, 0.2, 0.7}, turned = {0.1, 0.4, 0.3, 0.9};
  EXPECT_NEAR(welch_test(a, b), welch_test(turned, b), 1e-12);
  EXPECT_NEAR(welch_interval(a, b, 0.95).low, welch_interval(turned, b, 0.95).low, 1e-12);
  EXPECT_EQ(welch_test(Values{1, 1}, Values{1, 1}), 1);
  EXPECT_EQ(welch_test(Values{1, 1}, Values{2, 2}), 0);
}

TEST(Bootstrap, of_two_samples_draws_each_by_itself) {
  EXPECT_EQ(bootstrap_interval(Values{0, 1}, Values{5, 5, 5}, 0.95, 4000, 1), (Interval{-5, -4}));
  const Interval both = bootstrap_interval(Values{0, 1}, Values{0, 1}, 0.999, 4000, 1);  // drawn alike the difference would be 0
  EXPECT_EQ(both, (Interval{-1, 1}));
}

TEST(Deviation, divides_by_one_less_than_the_count) {
  EXPECT_DOUBLE_EQ(mean_of(Values{2, 4, 9}), 5);
  EXPECT_DOUBLE_EQ(deviation_of(Values{2, 4, 9}), std::sqrt((9.0 + 1 + 16) / 2));
}

// Of {0, 1}, a resample's mean is 0, 1/2 or 1 with probabilities 1/4, 1/2, 1/4; of three values, 27 resamples are alike.
TEST(Bootstrap, has_the_quantiles_of_all_resamples) {
  EXPECT_EQ(bootstrap_interval(Values{0, 1}, 0.95, 4000, 1), (Interval{0, 1}));
  EXPECT_EQ(bootstrap_interval(Values{0, 1}, 0.40, 4000, 1), (Interval{0.5, 0.5}));
  const Values three = {0.0, 1.0, 5.0};
  Values means;
  for (double a : three)
    for (double b : three)
      for (double c : three) means.push_back((a + b + c) / 3);
  std::sort(means.begin(), means.end());
  const Interval got = bootstrap_interval(three, 0.80, 20000, 3);
  EXPECT_NEAR(got.low, means[2], 1e-12);    // 10 % of 27: the third
  EXPECT_NEAR(got.high, means[24], 1e-12);  // from above as well
}

TEST(Bootstrap, is_a_function_of_its_seed) {
  const Values values = {0.13, 0.42, 0.77, 0.91, 0.05};
  const Interval first = bootstrap_interval(values, 0.9, 999, 7);
  EXPECT_EQ(first, bootstrap_interval(values, 0.9, 999, 7));
  EXPECT_NE(first, bootstrap_interval(values, 0.9, 999, 8));
}

// By hand: sorted .01 .02 .03 .04 times 4 3 2 1 gives .04 .06 .06 .04, and no value may fall: .04 .06 .06 .06.
TEST(Holm, adjusts_by_the_number_left_and_never_falls) {
  const std::vector<double> adjusted = holm_adjusted(Values{0.03, 0.01, 0.04, 0.02});
  const Values expected = {0.06, 0.04, 0.06, 0.06};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-15);
  EXPECT_EQ(holm_adjusted(Values{0.7, 0.9}), (Values{1, 1})) << "a probability is at most 1";
  EXPECT_TRUE(holm_adjusted(Values{}).empty());
}

}  // namespace
}  // namespace rowan

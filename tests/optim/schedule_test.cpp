#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace rowan {
namespace {

Schedule make(const std::string& kind, int64_t warmup, double min_ratio, int64_t decay_steps = 0) {
  Schedule s;
  s.kind = kind;
  s.warmup = warmup;
  s.min_ratio = min_ratio;
  s.decay_steps = decay_steps;
  return s;
}

TEST(Schedule, warm_up_is_linear_and_its_first_step_is_not_zero) {
  for (const char* kind : {"cosine", "linear", "constant", "wsd"}) {
    const Schedule s = make(kind, 10, 0.1);
    EXPECT_DOUBLE_EQ(s.factor(1, 100), 0.1) << kind;
    EXPECT_DOUBLE_EQ(s.factor(5, 100), 0.5) << kind;
    EXPECT_DOUBLE_EQ(s.factor(10, 100), 1.0) << kind;
    EXPECT_LE(s.factor(11, 100), 1.0) << kind;
  }
}

TEST(Schedule, cosine_is_half_a_wave_from_one_to_the_ratio) {
  const Schedule s = make("cosine", 0, 0.1, 100);
  EXPECT_DOUBLE_EQ(s.factor(50, 1000), 0.55);
  EXPECT_NEAR(s.factor(25, 1000), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(s.factor(100, 1000), 0.1);
  EXPECT_DOUBLE_EQ(s.factor(700, 1000), 0.1);  // past the end of the decay it stays there
}

TEST(Schedule, cosine_counts_its_way_from_the_end_of_the_warm_up) {
  const Schedule s = make("cosine", 100, 0.1);
  for (int64_t step : {101, 500, 1234, 1999, 2000}) {
    const double p = static_cast<double>(step - 100) / 1900;
    EXPECT_NEAR(s.factor(step, 2000), 0.1 + 0.9 * 0.5 * (1 + std::cos(std::numbers::pi * p)), 1e-15) << step;
  }
}

TEST(Schedule, linear_falls_evenly_to_the_ratio) {
  const Schedule s = make("linear", 20, 0.2);
  EXPECT_DOUBLE_EQ(s.factor(60, 100), 0.6);
  EXPECT_DOUBLE_EQ(s.factor(100, 100), 0.2);
}

TEST(Schedule, constant_stays_at_one_after_the_warm_up) {
  EXPECT_EQ(make("constant", 3, 0.1).factor(1000000, 10), 1.0);
}

TEST(Schedule, warmup_stable_decay_falls_at_the_end_only) {
  const Schedule s = make("wsd", 10, 0, 20);
  EXPECT_DOUBLE_EQ(s.factor(80, 100), 1);
  EXPECT_DOUBLE_EQ(s.factor(90, 100), 0.5);
  EXPECT_DOUBLE_EQ(s.factor(100, 100), 0);
  EXPECT_DOUBLE_EQ(make("wsd", 10, 0).factor(90, 100), 1);  // length 0: a tenth of the run
  EXPECT_DOUBLE_EQ(make("wsd", 10, 0).factor(95, 100), 0.5);
}

TEST(Schedule, a_warm_up_longer_than_the_run_never_leaves_the_ramp) {
  for (const char* kind : {"cosine", "linear", "constant", "wsd"})
    for (int64_t step : {1, 50, 100})
      EXPECT_DOUBLE_EQ(make(kind, 200, 0.1).factor(step, 100), static_cast<double>(step) / 200) << kind;
  EXPECT_DOUBLE_EQ(make("cosine", 200, 0.1).factor(201, 100), 0.1);
  EXPECT_DOUBLE_EQ(make("wsd", 200, 0.1).factor(201, 100), 0.1);
}

TEST(Schedule, extremes_stay_finite_and_between_the_ratio_and_one) {
  for (const char* kind : {"cosine", "linear", "constant", "wsd"})
    for (double ratio : {0.0, 0.1, 1.0})
      for (int64_t total : {0, 1, 2, 7})
        for (int64_t decay : {0, 1, 5, 1000})
          for (int64_t step = 1; step <= 12; ++step) {
            const double f = make(kind, 0, ratio, decay).factor(step, total);
            EXPECT_GE(f, ratio) << kind << " total " << total << " decay " << decay << " step " << step;
            EXPECT_LE(f, 1.0) << kind << " total " << total << " decay " << decay << " step " << step;
          }
}

TEST(Schedule, a_step_before_the_first_is_an_error) {
  EXPECT_THROW(make("cosine", 0, 0.1).factor(0, 10), Error);
}

}  // namespace
}  // namespace rowan

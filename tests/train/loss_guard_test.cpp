// Which loss is a spike, in numbers worked out by hand, and how often a run may try again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/loss_guard.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;

LossGuard guard_with(const std::vector<double>& losses, double z) {
  LossGuard guard(static_cast<int64_t>(losses.size()), z);
  for (double loss : losses) guard.accept(loss);
  return guard;
}

TEST(LossGuard, a_spike_is_more_than_z_deviations_above_the_mean) {
  const LossGuard guard = guard_with({1, 3, 1, 3}, 3);  // mean 2, deviation 1
  EXPECT_EQ(guard.judge(4.99), "");
  EXPECT_THAT(guard.judge(5.01), HasSubstr("the loss 5.0100 is a spike, 3.0 standard deviations above the mean 2.0000"));
  EXPECT_EQ(guard.judge(-100), "");  // a low one is welcome
}

TEST(LossGuard, equal_losses_leave_room_of_a_thousandth) {
  const LossGuard guard = guard_with({2, 2, 2}, 5);
  EXPECT_EQ(guard.judge(2.0099), "");
  EXPECT_NE(guard.judge(2.0101), "");
}

TEST(LossGuard, judges_only_by_a_full_window_and_by_its_newest_losses) {
  LossGuard guard(3, 1);
  EXPECT_EQ(guard.judge(1e9), "");
  guard.accept(1);
  guard.accept(1);
  EXPECT_EQ(guard.judge(1e9), "");
  for (double loss : {50, 60, 70}) guard.accept(loss);
  EXPECT_EQ(guard.judge(60), "");
  EXPECT_EQ(LossGuard(0, 1).judge(1e9), "");
}

TEST(LossGuard, counts_skips_since_the_last_update_and_rewinds_of_one_step) {
  LossGuard guard(0, 1);
  EXPECT_TRUE(guard.is_new());
  for (int64_t i = 0; i < LossGuard::kMostSkips; ++i) EXPECT_TRUE(guard.count_skip());
  EXPECT_FALSE(guard.count_skip());
  guard.accept(1);
  EXPECT_TRUE(guard.count_skip());
  for (int64_t i = 0; i < LossGuard::kMostRewinds; ++i) EXPECT_TRUE(guard.count_rewind(20 - i));
  EXPECT_FALSE(guard.count_rewind(20));
  EXPECT_TRUE(guard.count_rewind(21));
  EXPECT_FALSE(guard.is_new());
}

}  // namespace
}  // namespace rowan

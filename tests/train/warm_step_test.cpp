// A warm training step takes no memory from the system, and recomputing changes no bit.
#include <gmock/gmock.h>

#include "tests/support/small_run.h"

namespace rowan {
namespace {

class WarmStep : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(WarmStep, allocates_no_buffer_from_the_system) {
  const test::SmallRun files;
  TrainSession session(files.config(GetParam()));
  // Warm: every size has been met. The number of different ids in a batch varies, and buffers for their rows with it.
  for (int i = 0; i < 100; ++i) session.step();
  const int64_t before = pool_stats().system_allocations;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(session.step().finite);
  EXPECT_EQ(pool_stats().system_allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Configs, WarmStep,
                         ::testing::Values(std::vector<std::string>{"model.tied=true"}, std::vector<std::string>{},
                                           std::vector<std::string>{"optim.group.0.params=embed.*",
                                                                    "optim.group.0.rule=sparse_adam"},
                                           std::vector<std::string>{"train.grad_accum=3", "model.dropout=0.1"},
                                           std::vector<std::string>{"train.recompute=true"}));

std::string digest_after(const test::SmallRun& files, std::vector<std::string> overrides) {
  TrainSession session(files.config(overrides));
  for (int i = 0; i < 4; ++i) session.step();
  return make_image(session).state_digest();
}

TEST(Recompute, trains_to_the_same_bits) {
  const test::SmallRun files;
  for (const std::vector<std::string>& config : {std::vector<std::string>{"model.dropout=0.1", "train.grad_accum=2"},
                                                 {"model.positions=rope", "model.norm=rmsnorm", "model.mlp=swiglu"}}) {
    std::vector<std::string> again = config;
    again.push_back("train.recompute=true");
    EXPECT_EQ(digest_after(files, config), digest_after(files, again));
  }
}

}  // namespace
}  // namespace rowan

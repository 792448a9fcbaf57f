// A warm training step takes no memory from the system.
#include <gmock/gmock.h>

#include "tests/support/small_run.h"

namespace rowan {
namespace {

class WarmStep : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(WarmStep, allocates_no_buffer_from_the_system) {
  const test::SmallRun files;
  TrainSession session(files.config(GetParam()));
  for (int i = 0; i < 8; ++i) session.step();
  const int64_t before = pool_stats().system_allocations;
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(session.step().finite);
  EXPECT_EQ(pool_stats().system_allocations, before);
}

INSTANTIATE_TEST_SUITE_P(Configs, WarmStep,
                         ::testing::Values(std::vector<std::string>{"model.tied=true"}, std::vector<std::string>{},
                                           std::vector<std::string>{"optim.group.0.params=embed.*",
                                                                    "optim.group.0.rule=sparse_adam"},
                                           std::vector<std::string>{"train.grad_accum=3", "model.dropout=0.1"}));

}  // namespace
}  // namespace rowan

// When and how a training run saves: in the background, after a time, on a device that is full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Saving, in_the_background_gives_the_same_checkpoints_as_in_the_foreground) {
  const CommandRun run;
  const std::vector<std::string> sets = {"train.steps=12", "checkpoint.every=3", "train.eval_every=4", "checkpoint.keep_last=9"};
  std::vector<std::string> background = sets;
  background.push_back("checkpoint.background=true");
  ASSERT_EQ(run.train("front", sets).exit_code, 0);
  const CommandResult r = run.train("back", background);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.names_in("back/checkpoints"), run.names_in("front/checkpoints"));
  for (const std::string& name : run.names_in("front/checkpoints"))
    EXPECT_EQ(run.digest("back/checkpoints/" + name), run.digest("front/checkpoints/" + name)) << name;
  EXPECT_EQ(run.digest("back/best.h5"), run.digest("front/best.h5"));
  EXPECT_EQ(run.events("back", "checkpoint").size(), run.events("front", "checkpoint").size());
}

TEST(Saving, a_kill_during_background_saving_loses_nothing_that_stood) {
  const CommandRun run;
  StartedCommand training =
      run.start(run.train_arguments("a", {"train.steps=100000000", "checkpoint.every=1", "checkpoint.background=true"}));
  ASSERT_TRUE(
      StartedCommand::wait_until([&] { return run.exists("a/metrics.jsonl") && run.events("a", "checkpoint").size() >= 4; }));
  training.send(SIGKILL);
  training.wait();
  const int64_t until = run.losses("a").back().first + 3;
  ASSERT_EQ(run.resume("a", {"train.steps=" + std::to_string(until)}).exit_code, 0);
  ASSERT_EQ(run.train("whole", {"train.steps=" + std::to_string(until)}).exit_code, 0);
  EXPECT_EQ(run.digest("a"), run.digest("whole"));
  EXPECT_EQ(run.losses("a"), run.losses("whole"));
}

TEST(Saving, after_max_minutes_the_run_saves_and_ends_well) {
  const CommandRun run;
  const CommandResult r = run.train("a", {"train.steps=100000000", "train.max_minutes=0.002"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("stopped after 0.002 minutes at step "));
  EXPECT_EQ(run.events("a", "end").at(0).at("reason"), "max_minutes");
  const int64_t step = run.events("a", "end").at(0).at("step");
  ASSERT_EQ(run.train("whole", {"train.steps=" + std::to_string(step)}).exit_code, 0);
  EXPECT_EQ(run.digest("a"), run.digest("whole"));
}

TEST(Saving, every_so_many_minutes_a_checkpoint_is_made) {
  const CommandRun run;
  const CommandResult r = run.train(
      "a", {"train.steps=100000000", "train.max_minutes=0.03", "checkpoint.every_minutes=0.002", "checkpoint.keep_last=100"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const size_t checkpoints = run.events("a", "checkpoint").size();
  EXPECT_GE(checkpoints, 3u);  // 15 in 1.8 seconds, and one at the end, on a machine with nothing else to do
  EXPECT_LE(checkpoints, 16u);
}

// Files may not grow beyond this many bytes in programs that the test starts: writing more fails with EFBIG.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    old_handler_ = signal(SIGXFSZ, SIG_IGN);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    signal(SIGXFSZ, old_handler_);
  }

 private:
  rlimit old_;
  sighandler_t old_handler_;
};

class FailedSave : public ::testing::TestWithParam<const char*> {};

TEST_P(FailedSave, leaves_the_run_going_and_fails_it_only_when_it_was_the_last) {
  const CommandRun run;
  ASSERT_EQ(run.train("whole").exit_code, 0);
  const std::string background = std::string("checkpoint.background=") + GetParam();
  CommandResult r;
  {
    const FileLimit limit(50000);  // enough for the config and the log, not for a checkpoint
    r = run.train("a", {"checkpoint.every=3", "train.eval_every=4", background});
  }
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.err, HasSubstr("File too large (EFBIG)"));
  EXPECT_THAT(r.out, HasSubstr("training goes on"));
  EXPECT_EQ(run.losses("a"), run.losses("whole"));  // to the end
  EXPECT_TRUE(run.names_in("a/checkpoints").empty());
  EXPECT_FALSE(run.exists("a/best.h5"));
}

INSTANTIATE_TEST_SUITE_P(Background, FailedSave, ::testing::Values("false", "true"));

}  // namespace
}  // namespace rowan::test

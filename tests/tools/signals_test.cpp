// What signals do to a training run: save, stop with the code that shells expect, and go on later to the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kForever = "train.steps=100000000";

bool has_trained(const CommandRun& run, const std::string& name, size_t steps) {
  return run.exists(name + "/metrics.jsonl") && run.losses(name).size() >= steps;
}

// The state after this many steps without any interruption.
std::string digest_after(const CommandRun& run, int64_t steps) {
  const std::string name = "whole-" + std::to_string(steps);
  EXPECT_EQ(run.train(name, {"train.steps=" + std::to_string(steps)}).exit_code, 0);
  return run.digest(name);
}

int64_t newest_step(const CommandRun& run, const std::string& name) {
  const std::string file = run.names_in(name + "/checkpoints").back();  // step-0000000010.h5
  return std::stoll(file.substr(5, 10));
}

class StoppedBy : public ::testing::TestWithParam<int> {};

TEST_P(StoppedBy, saves_the_current_step_and_ends_with_128_and_the_signal) {
  const CommandRun run;
  StartedCommand training = run.start(run.train_arguments("a", {kForever}));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return has_trained(run, "a", 3); }));
  training.send(GetParam());
  const CommandResult r = training.wait();
  EXPECT_EQ(r.exit_code, 128 + GetParam()) << r.err;
  EXPECT_EQ(r.signal, 0);  // it ended by itself
  EXPECT_THAT(r.out, HasSubstr("go on with: rowan resume " + run.path("a")));
  const int64_t step = newest_step(run, "a");
  EXPECT_EQ(step, run.losses("a").back().first);  // nothing that was done is lost
  EXPECT_EQ(run.events("a", "end").at(0).at("reason"), "signal");
  EXPECT_EQ(run.digest("a"), digest_after(run, step));
}

INSTANTIATE_TEST_SUITE_P(Signals, StoppedBy, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& test) { return test.param == SIGINT ? "SIGINT" : "SIGTERM"; });

TEST(Signals, usr1_saves_and_the_run_goes_on) {
  const CommandRun run;
  StartedCommand training = run.start(run.train_arguments("a", {kForever}));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return has_trained(run, "a", 1); }));
  training.send(SIGUSR1);
  ASSERT_TRUE(StartedCommand::wait_until([&] { return !run.events("a", "checkpoint").empty(); }));
  const int64_t saved = run.events("a", "checkpoint").at(0).at("step");
  ASSERT_TRUE(StartedCommand::wait_until([&] { return run.losses("a").back().first > saved + 1; }));
  training.send(SIGKILL);
  EXPECT_EQ(training.wait().signal, SIGKILL);
  EXPECT_EQ(newest_step(run, "a"), saved);
  EXPECT_EQ(run.digest("a"), digest_after(run, saved));
}

TEST(Signals, a_second_interrupt_stops_at_once) {
  const CommandRun run;
  // A step that takes long: the first signal can't be served before the second comes.
  StartedCommand training =
      run.start(run.train_arguments("a", {kForever, "train.grad_accum=20000", "train.steps=2", "checkpoint.every=1"}));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return run.exists("a/metrics.jsonl") && run.events("a", "start").size() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  training.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  training.send(SIGINT);
  const CommandResult r = training.wait(10);
  EXPECT_FALSE(r.timed_out);
  EXPECT_EQ(r.signal, SIGINT);
  EXPECT_TRUE(run.names_in("a/checkpoints").empty());
}

TEST(Signals, a_killed_run_goes_on_to_the_same_bits_and_logs_each_step_once) {
  const CommandRun run;
  StartedCommand training = run.start(run.train_arguments("a", {kForever, "checkpoint.every=3", "checkpoint.keep_last=2"}));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return has_trained(run, "a", 8); }));
  training.send(SIGKILL);
  EXPECT_EQ(training.wait().signal, SIGKILL);
  const int64_t until = run.losses("a").back().first + 5;
  const CommandResult r = run.resume("a", {"train.steps=" + std::to_string(until)});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.digest("a"), digest_after(run, until));
  EXPECT_EQ(run.losses("a"), run.losses("whole-" + std::to_string(until)));
}

}  // namespace
}  // namespace rowan::test

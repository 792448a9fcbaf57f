// Losses that go wrong, as a user meets them: what is left out or gone back over is part of the run, and rowan replay shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/real.h"
#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kSteps = 40;

std::vector<std::string> spikes(const std::string& action, int64_t steps) {
  return {"train.spike.window=4",
          "train.spike.z=1.5",
          "train.spike.action=" + action,
          "checkpoint.every=3",
          "train.steps=" + std::to_string(steps),
          "model.dropout=0.1"};
}

class LossesThatGoWrong : public ::testing::TestWithParam<std::string> {};

TEST_P(LossesThatGoWrong, are_answered_in_the_same_way_by_a_run_that_was_stopped_and_by_one_that_was_not) {
  const CommandRun run;
  const CommandResult whole = run.train("whole", spikes(GetParam(), kSteps));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto events = run.events("whole", GetParam());
  ASSERT_FALSE(events.empty()) << "no spike at all";
  const int64_t first = events[0].at("failed_step");
  for (const int64_t stop : {first - 1, first, first + 3}) {
    const std::string name = "stopped-" + std::to_string(stop);
    ASSERT_EQ(run.train(name, spikes(GetParam(), stop)).exit_code, 0);
    const CommandResult resumed = run.resume(name, {"train.steps=" + std::to_string(kSteps)});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(run.digest(name), run.digest("whole")) << stop;
    EXPECT_EQ(run.losses(name), run.losses("whole")) << stop;
    EXPECT_EQ(run.names_in(name + "/capsules"), run.names_in("whole/capsules")) << stop;
  }
}

TEST_P(LossesThatGoWrong, are_replayed_to_the_same_bits) {
  const CommandRun run;
  std::vector<std::string> sets = spikes(GetParam(), kSteps);
  sets.push_back("checkpoint.keep_last=100");
  ASSERT_EQ(run.train("a", sets).exit_code, 0);
  ASSERT_FALSE(run.names_in("a/capsules").empty());
  for (const std::string& name : run.names_in("a/capsules")) {
    const std::string path = run.path("a/capsules/" + name);
    const CommandResult r = CommandRun::rowan({"replay", path, "--json", "--threads", "2"});
    ASSERT_EQ(r.exit_code, 0) << name << r.err;
    const auto replayed = nlohmann::json::parse(r.out);
    EXPECT_EQ(replayed.at("same"), true);
    EXPECT_EQ(replayed.at("replayed"), nlohmann::json::parse(read_all(path)));
  }
}

INSTANTIATE_TEST_SUITE_P(Answers, LossesThatGoWrong, ::testing::Values("skip", "rewind"),
                         [](const auto& test) { return test.param; });

TEST(LossesThatDiverge, stop_the_run_in_the_end_whatever_the_answer) {
  const CommandRun run;
  const std::string rate = kRealIsDouble ? "optim.lr=1e200" : "optim.lr=1e30";  // weights whose squares overflow
  const auto diverge = [&](const std::string& action) {
    return run.train(action, {rate, "train.clip_norm=0", "checkpoint.every=1", "train.on_nonfinite=" + action});
  };
  for (const auto& [action, message] :
       std::vector<std::pair<std::string, std::string>>{{"stop", "stopped before the update. The last good"},
                                                        {"skip", "10 batches in a row"},
                                                        {"rewind", "3 times did not help"}}) {
    const CommandResult r = diverge(action);
    EXPECT_EQ(r.exit_code, 3) << action;
    EXPECT_THAT(r.err, HasSubstr("the loss is nan at step 2"));
    EXPECT_THAT(r.err, HasSubstr(message));
    const std::string capsule = run.path(action + "/capsules/step-0000000002.json");
    const CommandResult replayed = CommandRun::rowan({"replay", capsule});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
    EXPECT_THAT(replayed.out, HasSubstr("loss       nan\n"));
    EXPECT_THAT(replayed.out, HasSubstr("the same bits as in the capsule"));
  }
}

TEST(Replay, says_what_differs_and_refuses_what_is_no_capsule) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", spikes("skip", kSteps)).exit_code, 0);
  const std::string name = "a/capsules/" + run.names_in("a/capsules").front();
  nlohmann::json capsule = nlohmann::json::parse(read_all(run.path(name)));
  capsule["loss"] = "1.5";
  run.write(name, capsule.dump());
  const CommandResult other = CommandRun::rowan({"replay", run.path(name)});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_THAT(other.err, HasSubstr("came to other bits, first at loss: "));
  capsule["position"] = capsule["position"].get<int64_t>() + 3;
  run.write(name, capsule.dump());
  EXPECT_THAT(CommandRun::rowan({"replay", run.path(name)}).err, HasSubstr("rowan: error: [replay]"));
  for (const char* text : {"", "{}", "[1", "{\"format\":\"rowan-capsule\",\"version\":2}", "{\"format\":7}"}) {
    const CommandResult r = CommandRun::rowan({"replay", run.write("wrong.json", text)});
    EXPECT_EQ(r.exit_code, 1) << text;
    EXPECT_THAT(r.err, HasSubstr("wrong.json' is not a capsule"));
  }
}

// A resume may change the number of steps, and with it the schedule: a capsule holds the config that its step was made with.
TEST(Replay, comes_to_the_same_bits_after_the_run_went_on_under_other_settings) {
  const CommandRun run;
  std::vector<std::string> sets = spikes("skip", kSteps);
  for (const char* set : {"train.schedule.kind=cosine", "train.schedule.decay_steps=0", "checkpoint.every=0",
                          "checkpoint.keep_last=1", "checkpoint.keep_best=false"})
    sets.emplace_back(set);
  ASSERT_EQ(run.train("a", sets).exit_code, 0);
  const std::vector<std::string> names = run.names_in("a/capsules");
  ASSERT_FALSE(names.empty());
  ASSERT_EQ(run.resume("a", {"train.steps=60"}).exit_code, 0);
  const CommandResult r = CommandRun::rowan({"replay", run.path("a/capsules/" + names[0])});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("from       the initial weights"));
}

TEST(Replay, ends_where_the_run_does) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", spikes("skip", kSteps)).exit_code, 0);
  const auto names = run.names_in("a/capsules");
  ASSERT_FALSE(names.empty());
  auto capsule = nlohmann::json::parse(read_all(run.path("a/capsules/" + names[0])));
  const std::pair<nlohmann::json, const char*> positions[] = {{int64_t{1} << 39, "the run ends at step 40"},
                                                              {int64_t{1} << 62, "an integer from 0 to"},
                                                              {-1, "an integer from 0 to"},
                                                              {1.5, "an integer from 0 to"}};
  for (const auto& [position, message] : positions) {
    capsule["position"] = position;
    const CommandResult r = CommandRun::rowan({"replay", run.write("a/capsules/other.json", capsule.dump())});
    EXPECT_EQ(r.exit_code, 1) << position;
    EXPECT_THAT(r.err, HasSubstr(message)) << position;
  }
}

TEST(Rewind, needs_a_grid_to_go_back_to) {
  const CommandRun run;
  const CommandResult r = run.train("a", {"train.on_nonfinite=rewind"});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_THAT(r.err, HasSubstr("goes back to the last multiple of checkpoint.every, which is 0"));
}

}  // namespace
}  // namespace rowan::test

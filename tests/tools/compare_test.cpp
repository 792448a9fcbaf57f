// rowan compare as a user runs it: killed in the middle of a run, and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/small_sweep.h"
#include "tests/support/started_command.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr const char* kSweep = R"(
[set]
"train.steps" = 400
"checkpoint.every" = 20
[[arm]]
name = "frozen"
[[arm]]
name = "exact"
set = { "optim.group.0.rule" = "adamw", "optim.group.0.untouched" = "exact" }
)";

Json timeless(Json json) {
  if (json.is_object()) json.erase("time");
  for (auto& item : json)
    if (item.is_structured()) item = timeless(item);
  return json;
}

Json results(const std::string& directory) {
  return timeless(Json::parse(read_all(directory + "/results.json")));
}

std::vector<std::string> arguments(const std::string& sweep, const std::string& out) {
  return {ROWAN_BINARY, "compare", sweep, "--out", out};
}

bool has_checkpoint(const std::string& run) {
  std::error_code missing;
  const std::filesystem::directory_iterator files(run + "/checkpoints", missing);
  return !missing && std::any_of(begin(files), end(files), [](const auto& f) { return f.path().filename().string()[0] == 's'; });
}

TEST(CompareCommand, killed_in_the_middle_of_a_run_ends_with_the_results_of_one_that_was_not) {
  const SmallSweep files;
  const std::string sweep = files.write(kSweep), whole = files.path("whole"), parts = files.path("parts");
  const CommandResult r = run_command(arguments(sweep, whole));
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("[12/12] exact"));
  EXPECT_THAT(r.out, HasSubstr("results.csv"));
  // Killed once after a checkpoint of the second run, stopped once in the third.
  StartedCommand killed(arguments(sweep, parts), files.path("out"), files.path("err"));
  const std::string second = parts + "/runs/frozen/optim.group.0.lr=0.001/seed-2";
  ASSERT_TRUE(StartedCommand::wait_until([&] { return has_checkpoint(second); }));
  killed.send(SIGKILL);
  EXPECT_EQ(killed.wait().signal, SIGKILL);
  StartedCommand stopped(arguments(sweep, parts), files.path("out"), files.path("err"));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return has_checkpoint(parts + "/runs/frozen/optim.group.0.lr=0.01/seed-1"); }));
  stopped.send(SIGTERM);
  const CommandResult end = stopped.wait();
  if (end.signal == 0) {  // not in the moment between two runs, when there is nothing to save
    EXPECT_EQ(end.exit_code, 143) << end.err;
    EXPECT_THAT(end.out, HasSubstr("goes on where it stopped"));
  }
  const CommandResult last = run_command(arguments(sweep, parts));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_THAT(last.out, HasSubstr("done before"));
  EXPECT_EQ(results(parts), results(whole));
}

// Killed without a warning as soon as the first run is done, between two runs, in the middle of the third, and in the last.
TEST(CompareCommand, killed_again_and_again_skips_what_is_done_and_ends_with_the_same_results) {
  const SmallSweep files;
  const std::string sweep = files.write(kSweep), whole = files.path("whole"), parts = files.path("parts");
  ASSERT_EQ(run_command(arguments(sweep, whole)).exit_code, 0);
  const auto run = [&](const std::string& arm, const std::string& rest) {
    return parts + "/runs/" + arm + "/optim.group.0.lr=" + rest;
  };
  const auto is_done = [](const std::string& directory) { return std::filesystem::exists(directory + "/compare.json"); };
  const std::vector<std::function<bool()>> moments = {
      [&] { return is_done(run("frozen", "0.001/seed-1")); },        // between the first run and the second
      [&] { return has_checkpoint(run("frozen", "0.01/seed-1")); },  // in the third
      [&] { return is_done(run("frozen", "3.0/seed-2")); },          // between the arms
      [&] { return has_checkpoint(run("exact", "3.0/seed-2")); }};   // in the last
  std::vector<std::filesystem::file_time_type> first_result;
  for (const auto& moment : moments) {
    StartedCommand killed(arguments(sweep, parts), files.path("out"), files.path("err"));
    ASSERT_TRUE(StartedCommand::wait_until(moment));
    killed.send(SIGKILL);
    EXPECT_EQ(killed.wait().signal, SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(parts + "/results.json"));
    first_result.push_back(std::filesystem::last_write_time(run("frozen", "0.001/seed-1/compare.json")));
  }
  const CommandResult last = run_command(arguments(sweep, parts));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  first_result.push_back(std::filesystem::last_write_time(run("frozen", "0.001/seed-1/compare.json")));
  EXPECT_EQ(std::set(first_result.begin(), first_result.end()).size(), 1u) << "a run that is done is not made again";
  for (const char* done : {"[1/12] frozen", "[6/12] frozen", "[11/12] exact"}) {
    const size_t at = last.out.find(done);
    ASSERT_NE(at, std::string::npos) << last.out;
    EXPECT_THAT(last.out.substr(at, last.out.find('\n', at) - at), HasSubstr("done before"));
  }
  EXPECT_EQ(results(parts), results(whole));
}

TEST(CompareCommand, leaves_nothing_when_its_data_cannot_be_read) {
  const SmallSweep files;
  const std::string sweep = files.write("[set]\n\"data.train\" = \"" + files.path("gone.txt") + "\"\n[[arm]]\nname = \"a\"\n");
  const CommandResult r = run_command(arguments(sweep, files.path("new/out")));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.err, HasSubstr("gone.txt"));
  EXPECT_FALSE(std::filesystem::exists(files.path("new")));
}

TEST(CompareCommand, refuses_settings_that_would_change_nothing) {
  const SmallSweep files;
  const auto refused = [&](const std::string& rest) {
    const CommandResult r = run_command(arguments(files.write(rest), files.path("out")));
    EXPECT_EQ(r.exit_code, 2) << r.out;
    return r.err;
  };
  const std::string dense = "[[arm]]\nname = \"dense\"\nset = { \"optim.group.0.rule\" = \"adamw\" }\n";
  EXPECT_THAT(refused("[set]\n\"model.tied\" = true\n" + dense +
                      "[[arm]]\nname = \"frozen\"\nset = { \"optim.group.0.rule\" = \"tf_lazy_adam\" }\n"),
              HasSubstr("sweep.toml:11:32: arm \"frozen\": optim.group.0.untouched = \"frozen\""));
  EXPECT_THAT(refused("[set]\n\"train.sampled.negatives\" = 5\n" + dense),
              HasSubstr("sweep.toml:5:29: train.sampled.negatives = 5"));
  // What acts in one arm may stand in all.
  const std::string both = files.write("[set]\n\"train.sampled.negatives\" = 5\n\"train.steps\" = 2\n" + dense +
                                       "[[arm]]\nname = \"sampled\"\nset = { \"train.loss\" = \"sampled\" }\n");
  EXPECT_EQ(run_command(arguments(both, files.path("out"))).exit_code, 0);
}

TEST(CompareCommand, says_what_is_wrong_with_a_sweep) {
  const SmallSweep files;
  const CommandResult wrong =
      run_command(arguments(files.write("[[arm]]\nname = \"a\"\nset = { \"optim.lrr\" = 1 }\n"), files.path("out")));
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("sweep.toml:6:23: arm \"a\""));
  EXPECT_FALSE(std::filesystem::exists(files.path("out"))) << "nothing is made before all is read";
  EXPECT_EQ(run_command(arguments(files.path("none.toml"), files.path("out"))).exit_code, 2);
}

}  // namespace
}  // namespace rowan::test

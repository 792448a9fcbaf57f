// rowan compare as a user runs it: killed in the middle of a run, and started again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

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

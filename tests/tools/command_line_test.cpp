// The frame around every command: what --help and --version print, and how a wrong command line is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult rowan(std::vector<std::string> arguments, const CommandOptions& options = {}) {
  arguments.insert(arguments.begin(), ROWAN_BINARY);
  return run_command(arguments, options);
}

// One line `rowan: error: ...`, perhaps one `hint: ...`, and nothing else.
void expect_usage_error(const CommandResult& result, const std::string& message, const std::string& hint) {
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("rowan: error: ["));
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_THAT(result.err, HasSubstr("\nhint: "));
  EXPECT_THAT(result.err, HasSubstr(hint));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 2) << result.err;
}

TEST(CommandLine, version_names_the_linked_libraries) {
  const CommandResult result = rowan({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, MatchesRegex("rowan [0-9.]+ \\((float|double)\\)\n"
                                       "OpenBLAS [0-9.]+[^\n]*\noneDNN [0-9.]+\nHDF5 [0-9.]+\ntoml\\+\\+ [0-9.]+\n"));
}

// The names under "Subcommands:" of a help text.
std::vector<std::string> commands_in(const std::string& help) {
  std::vector<std::string> names;
  std::istringstream lines(help.substr(std::min(help.size(), help.find("Subcommands:\n"))));
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > 2 && line.rfind("  ", 0) == 0 && line[2] != ' ') names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

void expect_help(std::vector<std::string> command) {
  std::string name = "rowan";
  for (const std::string& part : command) name += " " + part;
  std::vector<std::string> arguments = command;
  arguments.push_back("--help");
  const CommandResult result = rowan(arguments);
  EXPECT_EQ(result.exit_code, 0) << name << result.err;
  EXPECT_EQ(result.err, "") << name;
  EXPECT_THAT(result.out, HasSubstr("Usage: " + name + " ")) << name;
  for (const std::string& sub : commands_in(result.out)) {
    std::vector<std::string> inner = command;
    inner.push_back(sub);
    expect_help(inner);
  }
}

TEST(CommandLine, help_lists_every_command_and_each_has_a_help_of_its_own) {
  EXPECT_THAT(commands_in(rowan({"--help"}).out), ::testing::IsSupersetOf({"config", "prepare"}));
  EXPECT_THAT(commands_in(rowan({"config", "--help"}).out), ::testing::ElementsAre("explain", "resolve", "diff"));
  expect_help({});
}

TEST(CommandLine, no_command_is_an_error_that_lists_them) {
  expect_usage_error(rowan({}), "expected a command", "rowan --help");
}

TEST(CommandLine, a_misspelt_command_is_answered_by_the_nearest) {
  expect_usage_error(rowan({"confgi"}), "[rowan] there is no command 'confgi'", "did you mean 'rowan config'?");
  expect_usage_error(rowan({"config", "exlpain"}), "[rowan config] there is no command 'exlpain'",
                     "did you mean 'rowan config explain'?");
  expect_usage_error(rowan({"xyzzyxyzzy"}), "there is no command 'xyzzyxyzzy'", "see 'rowan --help'");
}

TEST(CommandLine, a_misspelt_option_is_answered_by_the_nearest) {
  expect_usage_error(rowan({"config", "resolve", "x.toml", "--ste", "a=b"}), "[rowan config resolve] there is no option '--ste'",
                     "did you mean '--set'?");
  // What is missing besides is not the likeliest cause.
  expect_usage_error(rowan({"prepare", "--overwite=1"}), "[rowan prepare] there is no option '--overwite'", "'--overwrite'");
  expect_usage_error(rowan({"config", "explain", "-q"}), "there is no option '-q'", "see 'rowan config explain --help'");
  expect_usage_error(rowan({"--verison"}), "[rowan] there is no option '--verison'", "did you mean '--version'?");
}

TEST(CommandLine, what_is_missing_is_named) {
  expect_usage_error(rowan({"config"}), "[rowan config] expected a command; commands: explain, resolve, diff",
                     "rowan config --help");
  expect_usage_error(rowan({"config", "resolve"}), "[rowan config resolve] config is required", "rowan config resolve --help");
  expect_usage_error(rowan({"config", "resolve", "x", "--set"}), "--set expects a value, and none came", "--help");
}

TEST(CommandLine, a_wrong_value_says_what_was_expected) {
  expect_usage_error(rowan({"sample", "run", "--seed", "x"}), "[rowan sample] --seed expects INT, got 'x'", "rowan sample --help");
  expect_usage_error(rowan({"sample", "run", "--tokens", "-1"}), "--tokens expects a number of at least 0, got '-1'", "--help");
  expect_usage_error(rowan({"sample", "run", "--tokens", "many"}), "--tokens expects a number of at least 0, got 'many'", "--help");
  expect_usage_error(rowan({"eval", "run", "--threads", "5000"}), "--threads expects a number from 0 to 1024, got '5000'",
                     "--help");
  expect_usage_error(rowan({"bench", "gemm", "--threads="}), "--threads expects a number from 0 to 1024, got ''", "--help");
  for (const char* option : {"--tokens", "--seed", "--top-k"})
    expect_usage_error(rowan({"sample", "run", option, "99999999999999999999"}),
                       std::string(option) + ": a number that fits 64 bits was expected, got '99999999999999999999'", "--help");
  for (const char* number : {"nan", "inf", "1e999"}) {
    expect_usage_error(rowan({"sample", "run", "--temperature", number}), "--temperature: a finite number was expected, got",
                       "--help");
    expect_usage_error(rowan({"bench", "embedding", "--zipf", number}), std::string("got '") + number + "'", "--help");
  }
  for (const char* command : {"train", "compare"})
    expect_usage_error(rowan({command, "a.toml", "--out="}), "--out: a name was expected, and an empty one came", "--help");
}

TEST(CommandLine, an_argument_too_many_is_named) {
  expect_usage_error(rowan({"config", "explain", "a", "extra"}), "[rowan config explain] unexpected argument 'extra'", "--help");
  expect_usage_error(rowan({"config", "explain", "model", "config"}), "unexpected argument 'config'", "--help");
}

TEST(CommandLine, an_option_takes_one_value_and_leaves_the_rest_alone) {
  const std::string smoke = ROWAN_SOURCE_DIR "/configs/smoke.toml";
  const CommandResult two = rowan({"config", "resolve", "--set", "train.steps=7", "--set", "train.seed=8", smoke});
  EXPECT_EQ(two.exit_code, 0) << two.err;
  EXPECT_THAT(two.out, HasSubstr("\nsteps = 7 "));
  EXPECT_THAT(two.out, HasSubstr("\nseed = 8 "));
  // An empty value stays one; the next argument is not taken for it. A value in brackets is not taken apart.
  for (const std::string value : {"", "[a,b]"}) {
    const CommandResult result = rowan({"config", "resolve", "--set=" + value, smoke});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, StartsWith("rowan: error: [config] --set " + value + ": expected key=value"));
  }
}

TEST(CommandLine, control_characters_of_an_argument_do_not_reach_the_terminal) {
  const CommandResult result = rowan({"a\x1b[2J\nb"});
  expect_usage_error(result, R"(there is no command 'a\u001B[2J\nb')", "--help");
}

TEST(CommandLine, control_characters_of_a_name_do_not_split_the_line_that_an_error_has) {
  for (const char* command : {"eval", "sample", "inspect", "resume", "replay", "compare", "plan"}) {
    const CommandResult result = rowan({command, "/no such\x1b[2J\nplace"});
    EXPECT_NE(result.exit_code, 0) << command;
    EXPECT_THAT(result.err, StartsWith("rowan: error: [")) << command;
    EXPECT_THAT(result.err, HasSubstr(R"(/no such\u001B[2J\nplace)")) << command;
    EXPECT_THAT(result.err, Not(HasSubstr("\nplace"))) << command;
  }
}

TEST(CommandLine, names_in_other_scripts_come_back_as_they_were_given) {
  expect_usage_error(rowan({"übung"}, {.environment = {{"LC_ALL", "C"}}}), "'übung'", "--help");
}

TEST(CommandLine, output_that_cannot_be_written_is_a_failure) {
  const std::string config = ROWAN_SOURCE_DIR "/configs/smoke.toml";
  const std::vector<std::vector<std::string>> table = {{"--version"},
                                                       {"--help"},
                                                       {"config", "diff", config, ROWAN_SOURCE_DIR "/configs/sort_abc.toml"},
                                                       {"config", "explain"},
                                                       {"config", "explain", "--all"},  // more than a buffer holds
                                                       {"config", "resolve", config}};
  for (const std::vector<std::string>& arguments : table) {
    const CommandResult result = rowan(arguments, {.stdout_path = "/dev/full"});
    EXPECT_EQ(result.exit_code, 1) << arguments.front();
    EXPECT_EQ(result.err, "rowan: error: [stdout] the output could not be written: No space left on device\n");
  }
}

TEST(CommandLine, closed_standard_streams_do_no_harm) {
  const CommandResult no_stdout = rowan({"--version"}, {.closed = {1}});
  EXPECT_EQ(no_stdout.exit_code, 1);
  EXPECT_THAT(no_stdout.err, StartsWith("rowan: error: [stdout]"));
  EXPECT_EQ(rowan({"--version"}, {.closed = {0}}).exit_code, 0);
  EXPECT_EQ(rowan({"--version"}, {.closed = {2}}).exit_code, 0);
  EXPECT_EQ(rowan({"nothing"}, {.closed = {0, 1, 2}}).exit_code, 2);
}

}  // namespace
}  // namespace rowan::test

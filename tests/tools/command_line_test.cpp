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

TEST(CommandLine, no_command_is_an_error_that_lists_them) {
  expect_usage_error(rowan({}), "expected a command", "rowan --help");
}

TEST(CommandLine, a_misspelt_command_is_answered_by_the_nearest) {
  expect_usage_error(rowan({"xyzzyxyzzy"}), "there is no command 'xyzzyxyzzy'", "see 'rowan --help'");
}

TEST(CommandLine, a_misspelt_option_is_answered_by_the_nearest) {
  expect_usage_error(rowan({"--verison"}), "[rowan] there is no option '--verison'", "did you mean '--version'?");
}

TEST(CommandLine, control_characters_of_an_argument_do_not_reach_the_terminal) {
  const CommandResult result = rowan({"a\x1b[2J\nb"});
  expect_usage_error(result, "there is no command 'a?[2J?b'", "--help");
}

TEST(CommandLine, names_in_other_scripts_come_back_as_they_were_given) {
  expect_usage_error(rowan({"übung"}, {.environment = {{"LC_ALL", "C"}}}), "'übung'", "--help");
}

TEST(CommandLine, output_that_cannot_be_written_is_a_failure) {
  for (const char* argument : {"--version", "--help"}) {
    const CommandResult result = rowan({argument}, {.stdout_path = "/dev/full"});
    EXPECT_EQ(result.exit_code, 1) << argument;
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

// rowan config explain | resolve | diff, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_command.h"

namespace {

using rowan::test::CommandResult;
using rowan::test::run_command;
using testing::HasSubstr;
using testing::StartsWith;

CommandResult config(std::vector<std::string> arguments) {
  std::vector<std::string> command = {ROWAN_BINARY, "config"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command);
}

const std::string kSmoke = ROWAN_SOURCE_DIR "/configs/smoke.toml";

// A directory of this test's own, removed at the end.
class ConfigCommand : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() / (std::string("rowan ") + test->name() + std::to_string(getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path directory_;
};

TEST_F(ConfigCommand, resolve_prints_a_config_that_resolves_to_itself) {
  const CommandResult first = config({"resolve", kSmoke, "--set", "train.steps=33"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\nsteps = 33  # command line\n"));
  EXPECT_THAT(first.out, HasSubstr("\nname = \"smoke\"  # default\n"));
  const std::string copy = write("config.toml", first.out);
  const CommandResult difference = config({"diff", kSmoke, directory_.string()});  // the directory stands for its config.toml
  EXPECT_EQ(difference.out, "train.steps: 20 -> 33\n");
  EXPECT_EQ(difference.exit_code, 0) << difference.err;
  EXPECT_EQ(config({"diff", copy, directory_.string()}).out, "");
}

TEST_F(ConfigCommand, explain_shows_a_field_by_any_of_its_names) {
  const CommandResult r = config({"explain", "n_embd"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("an integer from 1 to 16777216; default 128"));
  EXPECT_THAT(config({"explain", "--all"}).out, HasSubstr("[optim] rule = \"adamw\""));
  EXPECT_EQ(config({"explain", "--all", "model"}).exit_code, 2);
}

TEST_F(ConfigCommand, wrong_configs_end_with_code_2_and_one_line) {
  const std::string path = write("wr\u00f6ng one.toml", "[model]\nn_hed = 3\n");
  const CommandResult r = config({"resolve", path});
  EXPECT_EQ(r.exit_code, 2);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(r.err, "rowan: error: [config] " + path + ":2:1: [model] has no key \"n_hed\"\nhint: did you mean model.n_head?\n");
}

TEST_F(ConfigCommand, wrong_arguments_end_with_code_2) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"resolve", "/no/such.toml"}, "cannot open '/no/such.toml'"},
      {{"resolve", "/"}, "is a directory"},
      {{"resolve", kSmoke, "--set", "train.steps"}, "expected key=value"},
      {{"resolve", kSmoke, "--set", "train.steps=-1"}, "train.steps must be an integer of at least 0, got the integer -1"},
      {{"explain", "xyzzy"}, "there is no key \"xyzzy\""},
      {{"diff", kSmoke, "/no/such.toml"}, "cannot open '/no/such.toml'"},
  };
  for (const auto& [arguments, message] : wrong) {
    const CommandResult r = config(arguments);
    EXPECT_EQ(r.exit_code, 2) << message;
    EXPECT_THAT(r.err, StartsWith("rowan: error: [config] "));
    EXPECT_THAT(r.err, HasSubstr(message));
  }
}

}  // namespace

// rowan sample and rowan eval, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult sample(const CommandRun& run, const std::string& name, std::vector<std::string> options) {
  options.insert(options.begin(), {"sample", run.path(name), "--threads", "1"});
  return CommandRun::rowan(options);
}

TEST(Sample, temperature_0_gives_the_same_text_for_every_seed) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const CommandResult one = sample(run, "a", {"--prompt", "the ", "--tokens", "30", "--temperature", "0"});
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, StartsWith("the "));
  EXPECT_EQ(one.out.size(), 4 + 30 + 1u);  // prompt, one byte a token, end of the line
  EXPECT_EQ(one.out, sample(run, "a", {"--prompt", "the ", "--tokens", "30", "--temperature", "0", "--seed", "9"}).out);
  const auto drawn = [&](const std::string& seed) { return sample(run, "a", {"--prompt", "the ", "--seed", seed}).out; };
  EXPECT_EQ(drawn("1"), drawn("1"));
  EXPECT_NE(drawn("1"), drawn("2"));
}

TEST(Sample, shows_nothing_when_a_setting_is_wrong) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--stop", ""},   {"--top-p", "0"}, {"--min-p", "2"}, {"--temperature", "-1"}, {"--repetition-penalty", "0"},
      {"--top-k", "-1"}};
  for (const auto& [option, value] : wrong) {
    const CommandResult r = sample(run, "a", {"--prompt", "the ", option, value});
    EXPECT_EQ(r.exit_code, 2) << option;
    EXPECT_EQ(r.out, "") << option;
    EXPECT_THAT(r.err, StartsWith("rowan: error: [sampler]"));
  }
}

TEST(Sample, ends_before_a_stop_text) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const std::vector<std::string> settings = {"--prompt", "the ", "--tokens", "60", "--seed", "3"};
  const std::string whole = sample(run, "a", settings).out;
  const std::string stop = whole.substr(20, 2);
  std::vector<std::string> with_stop = settings;
  with_stop.insert(with_stop.end(), {"--stop", stop});
  EXPECT_EQ(sample(run, "a", with_stop).out, whole.substr(0, whole.find(stop, 4)) + "\n");
}

TEST(Sample, what_is_streamed_is_whole_utf8) {
  const CommandRun run;
  std::string text;
  for (int i = 0; i < 300; ++i) text += i % 3 == 0 ? "grün " : i % 3 == 1 ? "木 " : "🌳 ";
  run.write("text.txt", text);
  ASSERT_EQ(run.train("a", {"data.tokenizer=byte", "train.steps=2"}).exit_code, 0);
  // An untrained byte model makes invalid sequences all the time; a terminal must not see them.
  const CommandResult r = sample(run, "a", {"--prompt", "木", "--tokens", "200"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NO_THROW(nlohmann::json(r.out).dump());  // which refuses text that is not UTF-8
  EXPECT_THAT(r.out, StartsWith("木"));
}

TEST(Sample, shows_nothing_before_its_settings_are_accepted) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=1"}).exit_code, 0);
  for (const auto& [option, value, message] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"--temperature", "-1", "temperature"},
                                                                      {"--top-p", "2", "top_p"},
                                                                      {"--top-k", "-3", "top_k"},
                                                                      {"--min-p", "7", "min_p"},
                                                                      {"--prompt", "", "prompt is empty"},
                                                                      {"--prompt", "the ż", "'ż' (U+017C)"},
                                                                      {"--tokens", "-1", "--tokens"},
                                                                      {"--tokens", "many", "--tokens"}}) {
    const CommandResult r = sample(run, "a", {option, value});
    EXPECT_EQ(r.exit_code, 2) << option << " " << value;
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, HasSubstr(message));
  }
}

TEST(Sample, a_full_device_is_a_failure_with_its_reason) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=1"}).exit_code, 0);
  const CommandResult r = CommandRun::rowan({"sample", run.path("a")}, {.stdout_path = "/dev/full"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(r.err, "rowan: error: [sample] the text could not be written to stdout: No space left on device\n");
}

TEST(Eval, gives_what_training_measured_on_the_whole_split) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const auto logged = run.events("a", "eval").back();
  const CommandResult r = CommandRun::rowan({"eval", run.path("a"), "--json", "--threads", "1"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto result = nlohmann::json::parse(r.out);
  EXPECT_EQ(result.at("step"), 10);
  for (const char* field : {"loss", "perplexity", "bits_per_byte", "tokens"})
    EXPECT_EQ(result.at(field), logged.at(field)) << field;
  // One byte a character: bits per byte is the loss in bits, but for the split's first character, which is no target.
  const double bytes = result.at("bytes"), tokens = result.at("tokens");
  EXPECT_NEAR(result.at("bits_per_byte").get<double>(), result.at("loss").get<double>() * tokens / bytes / std::log(2.0), 1e-9);
}

TEST(Eval, keeps_byte_order_marks_and_line_ends_as_they_are) {
  const CommandRun run;
  std::string text = "\xEF\xBB\xBF";
  for (int i = 0; i < 100; ++i) text += "red tree\r\n";
  run.write("text.txt", text);
  ASSERT_EQ(run.train("a", {"train.steps=1"}).exit_code, 0);
  // r e d space t CR LF, and the mark: nothing is dropped or rewritten.
  EXPECT_THAT(CommandRun::rowan({"inspect", run.path("a")}).out, HasSubstr("vocabulary 8;"));
  const CommandResult r = CommandRun::rowan({"eval", run.path("a"), "--data", run.path("text.txt"), "--json"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(nlohmann::json::parse(r.out).at("tokens"), 1 + 1000 - 1);  // characters less the first, which is no target
}

}  // namespace
}  // namespace rowan::test

// rowan inspect --walk: what a newcomer is shown of the embedding step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

struct WalkRow {
  int64_t number = -1;  // of the table, or the id
  std::vector<double> values;
};

// The lines "position i 'X' ..." of the section whose headline begins so.
std::vector<WalkRow> rows_of(const std::string& text, const std::string& headline) {
  std::vector<WalkRow> rows;
  std::istringstream lines(text.substr(text.find(headline)));
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && line.rfind("  position", 0) == 0;) {
    std::istringstream words(line);
    std::string position, place, letter, word;
    words >> position >> place >> letter;
    WalkRow row;
    while (words >> word && word != "..." && word != "->")
      if (word == "id" || word == "row")
        words >> row.number;
      else
        row.values.push_back(std::stod(word));
    rows.push_back(row);
  }
  return rows;
}

class Walk : public ::testing::Test {
 protected:
  CommandResult walk(const std::string& text) { return CommandRun::rowan({"inspect", run_.path("toy"), "--walk", text}); }
  void train(const std::string& positions = "learned") {
    const CommandResult r =
        CommandRun::rowan({"train", ROWAN_SOURCE_DIR "/configs/sort_abc.toml", "--out", run_.path("toy"), "--set", "train.steps=1",
                           "--set", "train.threads=1", "--set", "model.positions=" + positions});
    ASSERT_EQ(r.exit_code, 0) << r.err;
  }
  CommandRun run_;
};

TEST_F(Walk, shows_ids_rows_of_both_tables_their_sum_and_the_logits) {
  train();
  const CommandResult r = walk("CBABCA");
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const auto ids = rows_of(r.out, "ids (1,6)"), tokens = rows_of(r.out, "embed.tokens.weight (3, 32)"),
             places = rows_of(r.out, "embed.positions.weight (11, 32)"), sums = rows_of(r.out, "sum (6,32)"),
             logits = rows_of(r.out, "logits (1,6,3)");
  const std::vector<int64_t> expected = {2, 1, 0, 1, 2, 0};
  ASSERT_EQ(ids.size(), 6u);
  ASSERT_EQ(tokens.size(), 6u);
  ASSERT_EQ(places.size(), 6u);
  ASSERT_EQ(sums.size(), 6u);
  ASSERT_EQ(logits.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(ids[i].number, expected[i]);
    EXPECT_EQ(tokens[i].number, expected[i]);
    EXPECT_EQ(places[i].number, static_cast<int64_t>(i));
    ASSERT_EQ(sums[i].values.size(), 8u);
    for (size_t j = 0; j < 8; ++j)
      EXPECT_NEAR(sums[i].values[j], tokens[i].values[j] + places[i].values[j], 1.6e-4) << i << "," << j;
    EXPECT_EQ(logits[i].values.size(), 3u);
  }
  EXPECT_EQ(tokens[0].values, tokens[4].values);  // the same letter, the same row
  EXPECT_THAT(r.out.substr(r.out.rfind("\nThe last row")), MatchesRegex("\nThe last row[^\n]*, 6 times, it gives: '[ABC]{6}'\n"));
}

TEST_F(Walk, says_so_when_there_is_no_position_table) {
  train("rope");
  const CommandResult r = walk("CBA");
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("No position table (positions = \"rope\")"));
}

TEST_F(Walk, wrong_texts_are_named) {
  train();
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"CBAD", "'D' (U+0044) at byte offset 3"}, {"", "the text is empty"}, {"AAAAAAAAAAAA", "12 tokens long"}}) {
    const CommandResult r = walk(text);
    EXPECT_EQ(r.exit_code, 2) << text;
    EXPECT_EQ(r.out, "") << text;
    EXPECT_THAT(r.err, HasSubstr(message));
  }
}

}  // namespace
}  // namespace rowan::test

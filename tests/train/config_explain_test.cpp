// The help comes from the declarations: every field is in it, with type, limits, default and other names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "train/config.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// The lines that one field has in the help of its table.
std::string entry(const ConfigField& field) {
  return "  " + key_leaf(field.key) + "\n      " + field.help + "\n      " + describe_expected(field.type, field.limits) +
         "; default " + field.value + "\n";
}

TEST(ExplainConfig, shows_every_field_of_every_table_and_rule) {
  const std::string all = explain_everything();
  Config config = parse_config("", "a.toml");
  int fields = 0;
  for (const ConfigSection& section : config_sections(config)) {
    for (ConfigField field : section_fields(section)) {
      if (field.key == "name") field.value = "\"\"";  // the file's name
      EXPECT_THAT(all, HasSubstr(entry(field)));
      EXPECT_THAT(explain_config(field.key), HasSubstr(entry(field)));
      ++fields;
    }
  }
  EXPECT_GT(fields, 40);
  for (const std::string& rule : optimizer_rules()) {
    const auto optimizer = make_optimizer(rule);
    const auto rule_fields = section_fields({"optim." + rule, "", [&](FieldVisitor& v) { optimizer->visit(v); }});
    for (const ConfigField& field : rule_fields) {
      EXPECT_THAT(all, HasSubstr(entry(field)));
      EXPECT_THAT(explain_config("optim." + rule), HasSubstr(entry(field)));
      EXPECT_THAT(explain_config(field.key), HasSubstr(entry(field)));
    }
  }
}

TEST(ExplainConfig, of_nothing_is_an_overview_of_one_line_a_field) {
  const std::string text = explain_config("");
  Config config = parse_config("", "a.toml");
  for (const ConfigSection& section : config_sections(config)) {
    const std::string title = section.path.empty() ? "(top level)" : "[" + section.path + "]  " + section.help;
    EXPECT_THAT(text, HasSubstr("\n" + title + "\n"));
    for (const ConfigField& field : section_fields(section)) EXPECT_THAT(text, HasSubstr("\n  " + key_leaf(field.key) + " "));
  }
  EXPECT_THAT(text, MatchesRegex("(.|\n)*\n  d_model +integer +128 +width of the residual stream\n(.|\n)*"));
  EXPECT_THAT(text, MatchesRegex("(.|\n)*\n  lr +number +by rule +learning rate; .*\n(.|\n)*"));
  for (const std::string& rule : optimizer_rules()) EXPECT_THAT(text, HasSubstr("\n  " + rule));
  // Every field of every rule stands somewhere: in the line of the rule or among those that most rules have.
  for (const std::string& rule : optimizer_rules()) {
    const auto optimizer = make_optimizer(rule);
    for (const ConfigField& field : section_fields({"optim", "", [&](FieldVisitor& v) { optimizer->visit(v); }}))
      EXPECT_THAT(text, HasSubstr(key_leaf(field.key))) << rule;
  }
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 160u) << line;
  EXPECT_LT(count, 200);
}

TEST(ExplainConfig, of_a_table_shows_that_table) {
  const std::string text = explain_config("train.schedule");
  EXPECT_THAT(text, HasSubstr("[train.schedule]"));
  EXPECT_THAT(text, HasSubstr("\"wsd\""));
  EXPECT_THAT(text, Not(HasSubstr("d_model")));
}

TEST(ExplainConfig, of_an_alias_or_a_bare_name_shows_the_field) {
  EXPECT_EQ(explain_config("model.n_embd"), explain_config("model.d_model"));
  EXPECT_EQ(explain_config("seq_len"), explain_config("data.seq_len"));
  for (const char* key : {"optim.lr", "optim.group.lr", "optim.group.0.lr", "optim.group[12].lr"})
    EXPECT_EQ(explain_config(key), explain_config("lr")) << key;
  EXPECT_EQ(explain_config("optim.group.0"), explain_config("optim.group"));
  EXPECT_THROW(explain_config("optim.group.0.lrr"), Error);
  EXPECT_THAT(explain_config("model.d_model"), HasSubstr("also written n_embd, hidden_size, dim, C"));
}

TEST(ExplainConfig, of_optim_lists_the_rules) {
  for (const std::string& rule : optimizer_rules()) EXPECT_THAT(explain_config("optim"), HasSubstr("\"" + rule + "\""));
  EXPECT_THAT(explain_config("optim.group"), HasSubstr("params"));
}

TEST(ExplainConfig, of_an_unknown_key_names_the_nearest) {
  try {
    explain_config("train.stpes");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("train.stpes"));
    EXPECT_EQ(e.hint(), "did you mean train.steps?");
  }
}

TEST(ExplainConfig, says_which_parameters_a_rule_does_not_take) {
  EXPECT_THAT(explain_config("optim.sparse_adam"), HasSubstr("only for row-sparse parameters"));
  EXPECT_THAT(explain_config("optim.muon"), HasSubstr("only for the matrices of blocks"));
  EXPECT_THAT(explain_config("optim.adamw"), Not(HasSubstr("only for")));
}

}  // namespace
}  // namespace rowan

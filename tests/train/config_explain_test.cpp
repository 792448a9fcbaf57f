// The help comes from the declarations: every field is in it, with type, limits, default and other names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "train/config.h"
#include "train/config_fields.h"

namespace rowan {
namespace {

using testing::HasSubstr;
using testing::Not;

// The lines that one field has in the help of its table.
std::string entry(const ConfigField& field) {
  return "  " + key_leaf(field.key) + "\n      " + field.help + "\n      " + describe_expected(field.type, field.limits) +
         "; default " + field.value + "\n";
}

TEST(ExplainConfig, shows_every_field_of_every_table_and_rule) {
  const std::string all = explain_config("");
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

TEST(ExplainConfig, of_a_table_shows_that_table) {
  const std::string text = explain_config("train.schedule");
  EXPECT_THAT(text, HasSubstr("[train.schedule]"));
  EXPECT_THAT(text, HasSubstr("\"wsd\""));
  EXPECT_THAT(text, Not(HasSubstr("d_model")));
}

TEST(ExplainConfig, of_an_alias_or_a_bare_name_shows_the_field) {
  EXPECT_EQ(explain_config("model.n_embd"), explain_config("model.d_model"));
  EXPECT_EQ(explain_config("seq_len"), explain_config("data.seq_len"));
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

// What differs between two configs, and with which differences a saved run may go on.
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

Config with(const std::vector<std::string>& overrides) {
  return parse_config("[model]\ntied = false\n", "a.toml", overrides);
}

TEST(ConfigDiff, lists_changed_fields_with_both_values) {
  const auto changes = config_diff(with({}), with({"train.steps=5", "data.train=x.txt", "model.d_model=64"}));
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].key, "model.d_model");
  EXPECT_EQ(changes[0].before, "128");
  EXPECT_EQ(changes[0].after, "64");
  EXPECT_EQ(changes[1].key, "data.train");
  EXPECT_EQ(changes[1].before, "[]");
  EXPECT_EQ(changes[1].after, "[\"x.txt\"]");
  EXPECT_EQ(changes[2].key, "train.steps");
}

TEST(ConfigDiff, does_not_mind_where_a_value_came_from) {
  EXPECT_TRUE(config_diff(with({}), with({"train.steps=1000", "model.n_head=4"})).empty());
}

TEST(ConfigDiff, shows_fields_that_only_one_side_has) {
  const auto changes = config_diff(with({"optim.rule=adamw"}), with({"optim.rule=sgd"}));
  bool lost_beta = false, gained_momentum = false;
  for (const ConfigChange& change : changes) {
    lost_beta |= change.key == "optim.beta1" && change.before == "0.9" && change.after.empty();
    gained_momentum |= change.key == "optim.momentum" && change.before.empty() && !change.after.empty();
  }
  EXPECT_TRUE(lost_beta);
  EXPECT_TRUE(gained_momentum);
}

TEST(ResumeChanges, allow_steps_logging_checkpoints_threads_and_paths) {
  const std::vector<std::string> overrides = {"train.steps=5",
                                              "train.threads=2",
                                              "train.eval_every=7",
                                              "train.eval_tokens=9",
                                              "train.log_every=3",
                                              "train.sample_every=2",
                                              "train.sample_prompt=x",
                                              "checkpoint.every=5",
                                              "checkpoint.every_minutes=1",
                                              "checkpoint.keep_last=1",
                                              "checkpoint.keep_best=false",
                                              "data.train=moved.txt",
                                              "data.val=moved_val.txt",
                                              "name=other"};
  EXPECT_EQ(check_resume_changes(with({}), with(overrides)).size(), overrides.size());
}

TEST(ResumeChanges, say_what_new_steps_do_to_the_schedule) {
  const auto note_with = [](const std::string& schedule) {
    return check_resume_changes(with({schedule}), with({schedule, "train.steps=50"})).at(0).note;
  };
  EXPECT_THAT(note_with("train.schedule.kind=cosine"), HasSubstr("cosine schedule ends at the last step"));
  EXPECT_THAT(note_with("train.schedule.kind=wsd"), HasSubstr("50 steps"));
  EXPECT_EQ(note_with("train.schedule.kind=constant"), "");
  EXPECT_EQ(note_with("train.schedule.decay_steps=40"), "");
}

TEST(ResumeChanges, refuse_each_other_change_by_name) {
  const std::vector<std::string> refused = {
      "model.d_model=64",  "model.dropout=0.5",        "model.rope.theta=5",   "data.seq_len=32", "data.batch_size=3",
      "data.order=random", "data.tokenizer=byte",      "data.val_fraction=.2", "train.seed=9",    "train.grad_accum=2",
      "train.clip_norm=2", "train.schedule.warmup=10", "optim.lr=1",           "optim.beta1=.5",  "optim.rule=sgd"};
  for (const std::string& change : refused) {
    const std::string key = change.substr(0, change.find('='));
    try {
      check_resume_changes(with({}), with({change, "train.steps=7"}));
      FAIL() << change;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), HasSubstr(key + " from "));
      EXPECT_THAT(e.what(), Not(HasSubstr("train.steps from")));
    }
  }
}

TEST(ResumeChanges, name_all_that_is_refused_at_once) {
  try {
    check_resume_changes(with({}), with({"model.d_model=64", "optim.lr=0.5", "optim.group.0.params=embed.*"}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("model.d_model from 128 to 64"));
    EXPECT_THAT(e.what(), HasSubstr("optim.lr from 0.001 to 0.5"));
    EXPECT_THAT(e.what(), HasSubstr("optim.group.0.params from (absent) to \"embed.*\""));
  }
}

}  // namespace
}  // namespace rowan

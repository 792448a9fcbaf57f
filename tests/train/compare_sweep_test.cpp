// Reading sweeps: what they come to, and where wrong ones are wrong.
#include "train/compare_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/small_sweep.h"
#include "train/file.h"

namespace rowan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Sweep, crosses_arms_with_every_point_of_their_grids) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(files.write(R"(
[[arm]]
name = "a"
set = { optim.group = { 0.rule = "sparse_adam" } }
[[arm]]
name = "b"
set = { "optim.group.0.rule" = "rowwise_adagrad" }
grid = { "optim.group.0.lr" = [0.5], "train.clip_norm" = [0.0, 1.0] }
)"));
  ASSERT_EQ(sweep.arms.size(), 2u);
  EXPECT_EQ(sweep.name, "sweep");
  EXPECT_EQ(sweep.baseline, "a") << "the first";
  EXPECT_EQ(sweep.arms[0].points.size(), 3u);
  EXPECT_EQ(sweep.arms[0].points[1].label, "optim.group.0.lr=0.01");
  ASSERT_EQ(sweep.arms[1].points.size(), 2u) << "an arm's own axis takes the place of the shared one";
  EXPECT_EQ(sweep.arms[1].points[1].label, "optim.group.0.lr=0.5,train.clip_norm=1.0");
  const Config config = run_config(sweep, 1, 1, 2);
  EXPECT_EQ(config.groups[0].rule, "rowwise_adagrad");
  EXPECT_EQ(config.groups[0].optimizer->lr(), 0.5);
  EXPECT_EQ(config.train.clip_norm, 1.0);
  EXPECT_EQ(config.train.seed, 2);
  EXPECT_EQ(config.name, "b-seed-2");
}

TEST(Sweep, names_directories_by_readable_values_of_which_no_two_are_the_same) {
  const test::SmallSweep files;
  const Sweep sweep =
      load_sweep(files.write("grid = { \"optim.rule\" = [\"adamw\", \"sgd\"], \"train.sample_prompt\" = [\"a/b\", "
                             "\"a_b\", \"a b\", \"a%20b\", \"Größe\"] }\n",
                             "[[arm]]\nname = \"a\"\nset = { \"train.sample_every\" = 10 }\n", false));
  std::vector<std::string> labels;
  for (const SweepPoint& p : sweep.arms[0].points) labels.push_back(p.label);
  EXPECT_THAT(labels,
              ::testing::ElementsAre("optim.rule=adamw,train.sample_prompt=a%2Fb", "optim.rule=adamw,train.sample_prompt=a_b",
                                     "optim.rule=adamw,train.sample_prompt=a%20b", "optim.rule=adamw,train.sample_prompt=a%2520b",
                                     "optim.rule=adamw,train.sample_prompt=Größe", "optim.rule=sgd,train.sample_prompt=a%2Fb",
                                     "optim.rule=sgd,train.sample_prompt=a_b", "optim.rule=sgd,train.sample_prompt=a%20b",
                                     "optim.rule=sgd,train.sample_prompt=a%2520b", "optim.rule=sgd,train.sample_prompt=Größe"));
}

TEST(Sweep, writes_the_seed_to_every_seed_key_and_settings_to_all_runs) {
  const test::SmallSweep files;
  const std::string path = files.write("seed_keys = [\"train.seed\", \"data.zipf.seed\"]\n", R"(
[set]
data.zipf.exponent = 0.5
[[arm]]
name = "a"
)");
  const Sweep sweep = load_sweep(path, {"train.steps=7", "data.zipf.answers=3"});
  const Config config = run_config(sweep, 0, 0, 2);
  EXPECT_EQ(config.data.zipf.seed, 2);
  EXPECT_EQ(config.data.zipf.exponent, 0.5);
  EXPECT_EQ(config.data.zipf.answers, 3);
  EXPECT_EQ(config.train.steps, 7);
}

TEST(Sweep, refuses_an_override_that_an_arm_or_the_grid_would_win_over) {
  const test::SmallSweep files;
  const std::string path = files.write("[[arm]]\nname = \"a\"\nset = { \"optim.group.0.beta1\" = 0.8 }\n");
  for (const auto& [given, reason] : {std::pair{"optim.group.0.lr=0.5", "arm \"a\" has optim.group.0.lr of its own"},
                                      {"optim.group.0.beta1=0.5", "arm \"a\" has optim.group.0.beta1 of its own"},
                                      {"name=x", "each run is named by its arm and seed"},
                                      {" name =x", "each run is named by its arm and seed"},
                                      {"train.seed=5", "each run gets its own value of seeds"}}) {
    try {
      load_sweep(path, {given});
      ADD_FAILURE() << given << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), AllOf(StartsWith("[config] --set "), HasSubstr(reason)));
    }
  }
}

struct Wrong {
  const char* what;
  const char* top;
  const char* arms;
  const char* message;
  const char* hint;
};

class WrongSweep : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongSweep, is_an_error_that_says_where) {
  const Wrong& w = GetParam();
  const test::SmallSweep files;
  const std::string path =
      files.write(w.top, w.arms, std::string(w.top).find("grid") == std::string::npos, std::string(w.top).rfind("seeds", 0) != 0);
  try {
    load_sweep(path);
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), AllOf(StartsWith("[config] "), HasSubstr("sweep.toml:"), HasSubstr(w.message)));
    EXPECT_THAT(e.hint(), HasSubstr(w.hint));
  }
}

constexpr const char* kArm = "[[arm]]\nname = \"a\"\n";

INSTANTIATE_TEST_SUITE_P(
    Sweeps, WrongSweep,
    ::testing::Values(
        Wrong{"unknown key", "baselin = \"a\"\n", kArm, "2:1: the top level has no key \"baselin\"", "baseline"},
        Wrong{"unknown arm field", "", "[[arm]]\nname = \"a\"\nsets = { }\n", "[arm] has no key \"sets\"", "arm.set"},
        Wrong{"unknown config field", "", "[[arm]]\nname = \"a\"\nset = { \"optim.lrr\" = 1.0 }\n",
              "6:23: arm \"a\": --set optim.lrr=1.0: there is no key", "optim.lr"},
        Wrong{"value of another type", "", "[[arm]]\nname = \"a\"\nset = { \"optim.lr\" = \"fast\" }\n", "must be a number", ""},
        Wrong{"unknown rule", "", "[[arm]]\nname = \"a\"\nset = { \"optim.rule\" = \"adamx\" }\n", "must be one of", "adam"},
        Wrong{"no arm", "", "", "1:1: expected [[arm]]", ""},
        Wrong{"arm without a name", "", "[[arm]]\nset = { }\n", "an arm needs a name", ""},
        Wrong{"arm's name no directory", "", "[[arm]]\nname = \"a/b\"\n", "an arm's name is a directory's name", ""},
        Wrong{"two arms of a name", "", "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"a\"\n", "there are two arms named \"a\"", ""},
        Wrong{"unknown baseline", "baseline = \"denze\"\n", "[[arm]]\nname = \"dense\"\n", "there is no arm named \"denze\"",
              "did you mean \"dense\"?"},
        Wrong{"no grid", "grid = { }\n", kArm, "the grid of arm \"a\" is empty", "optim.lr"},
        Wrong{"axis without values", "grid = { \"optim.lr\" = [] }\n", kArm, "optim.lr must be an array of the values to try", ""},
        Wrong{"axis of one value that is no array", "grid = { \"optim.lr\" = 0.1 }\n", kArm, "got the number 0.1", ""},
        Wrong{"value twice", "grid = { \"optim.lr\" = [0.1, 0.1] }\n", kArm, "2:29: optim.lr has the value 0.1 twice", ""},
        Wrong{"axis over data", "grid = { \"data.seq_len\" = [4, 8] }\n", kArm, "the grid can't set data.seq_len", ""},
        Wrong{"arm with data", "", "[[arm]]\nname = \"a\"\nset = { \"data.order\" = \"random\" }\n", "an arm can't set data.order",
              "[set]"},
        Wrong{"arm sets an axis", "", "[[arm]]\nname = \"a\"\nset = { \"optim.group.0.lr\" = 1.0 }\n", "which is also in its grid",
              ""},
        Wrong{"one seed", "seeds = [1]\n", kArm, "2:1: seeds must have at least two values, got 1", "seeds = [1, 2, 3]"},
        Wrong{"seed twice", "seeds = [1, 1]\n", kArm, "2:13: seeds has 1 twice", ""},
        Wrong{"seed no integer", "seeds = [1, 2.5]\n", kArm, "a seed is an integer of at least 0, got the number 2.5", ""},
        Wrong{"aa_seeds too few", "aa_seeds = [9]\n", kArm, "aa_seeds must have as many values as seeds, which has 2, got 1", ""},
        Wrong{"aa_seeds of seeds", "aa_seeds = [9, 2]\n", kArm, "aa_seeds has 2, which is one of seeds", ""},
        Wrong{"seeds for no seed", "seed_keys = [\"train.steps\"]\n", kArm, "2:13: seed_keys must name fields that are seeds",
              "train.seed"},
        Wrong{"seeds for nothing", "seed_keys = []\n", kArm, "seed_keys is empty", "train.seed"},
        Wrong{"seed set for all", "set = { \"train.seed\" = 5 }\n", kArm, "2:24: [set] has train.seed, which gets each run's own",
              ""},
        Wrong{"axis set for all", "set = { \"optim.group.0.lr\" = 0.5 }\n", kArm,
              "[set] has optim.group.0.lr, which is also in [grid]", ""},
        Wrong{"axis set for all in brackets", "set = { \"optim.group[0].lr\" = 0.5 }\n", kArm,
              "[set] has optim.group.0.lr, which is also in [grid]", ""},
        Wrong{"arm sets an axis in brackets", "", "[[arm]]\nname = \"a\"\nset = { \" optim.group[0].lr\" = 1.0 }\n",
              "arm \"a\" sets optim.group.0.lr, which is also in its grid", ""},
        Wrong{"arm with data and a space", "", "[[arm]]\nname = \"a\"\nset = { \" data.order\" = \"random\" }\n",
              "an arm can't set data.order", "[set]"},
        Wrong{"grid with a seed and a space", "grid = { \"train.seed \" = [1, 2] }\n", kArm, "the grid can't set train.seed", ""},
        Wrong{"two axes of a key", "grid = { \"optim.group.0.lr\" = [0.1], \"optim.group[0].lr\" = [0.2] }\n", kArm,
              "2:38: [grid] has optim.group.0.lr twice", ""},
        Wrong{"two settings of a key", "set = { \"train.steps\" = 5, \"train.steps \" = 7 }\n", kArm,
              "2:28: [set] has train.steps twice", ""},
        Wrong{"arm with two settings of a key", "",
              "[[arm]]\nname = \"a\"\nset = { \"optim.group[0].beta1\" = 0.5, optim.group.0.beta1 = 0.7 }\n",
              "set of the arm has optim.group.0.beta1 twice", ""},
        Wrong{"seed set for all by a key with a space", "seed_keys = [\" train.seed \"]\nset = { \"train.seed\" = 5 }\n", kArm,
              "[set] has train.seed, which gets each run's own", ""},
        Wrong{"key with a value in it", "", "[[arm]]\nname = \"a\"\nset = { \"data.order=random #\" = \"x\" }\n",
              "6:9: a field's key has no '='", ""},
        Wrong{"name up a folder", "name = \"../pwn\"\n", kArm,
              "2:8: name must be usable as a directory's name: not empty, UTF-8, without '/' and control characters", "name = "},
        Wrong{"name of nothing", "name = \"\"\n", kArm, "2:8: name must be usable as a directory's name", "top of the sweep"},
        Wrong{"name in two parts", "name = \"a/b\"\n", kArm, "2:8: name must be usable as a directory's name", ""},
        Wrong{"name of a folder", "name = \"..\"\n", kArm, "2:8: name must be usable as a directory's name", ""},
        Wrong{"name with an escape", "name = \"a\\u001b[31m\"\n", kArm, "2:8: name must be usable as a directory's name", ""},
        Wrong{"name set for all", "set = { \"name\" = \"x\" }\n", kArm, "2:9: name can't be set here", "at the top of the sweep"},
        Wrong{"name set by an arm", "", "[[arm]]\nname = \"a\"\nset = { \"name \" = \"x\" }\n", "6:9: name can't be set here", ""},
        Wrong{"name in the grid", "grid = { \"name\" = [\"x\"] }\n", kArm, "2:10: name can't be set here", ""},
        Wrong{"arm with another model", "", "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\nset = { \"model.d_model\" = 16 }\n",
              "6:1: arm \"b\" (optim.group.0.lr=0.001) has a model of other parameters than arm \"a\"", "[set]"},
        Wrong{"arm with another batch", "", "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\nset = { \"train.grad_accum\" = 2 }\n",
              "another train.grad_accum", "[set]"},
        Wrong{"arm judged on other tokens", "",
              "[[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\nset = { \"train.eval_tokens\" = 8 }\n", "another train.eval_tokens",
              "[set]"},
        Wrong{"runs that skip batches", "set = { \"train.on_nonfinite\" = \"skip\" }\n", kArm,
              "the runs of arm \"a\" have train.on_nonfinite = \"skip\"", "\"stop\""},
        Wrong{"arm that leaves spikes out", "", "[[arm]]\nname = \"a\"\nset = { \"train.spike.window\" = 8 }\n",
              "train.spike.action = \"skip\"", "\"stop\""},
        Wrong{"axis over steps", "grid = { \"train.steps\" = [10, 20] }\n", kArm, "another train.steps", "[set]"},
        Wrong{"confidence in percent", "confidence = 95\n", kArm, "must be a number from 0.5 to 0.9999", ""}),
    [](const auto& test) {
      std::string name = test.param.what;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

// The message of the refusal; "" when the sweep is accepted.
std::string refusal(const std::string& path) {
  try {
    load_sweep(path);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    return std::string(e.what()) + " | " + e.hint();
  }
  return "";
}

TEST(Sweep, refuses_an_arm_against_itself) {
  const test::SmallSweep files;
  const auto second = [&](const std::string& arm) { return refusal(files.write(kArm + ("[[arm]]\nname = \"b\"\n" + arm))); };
  const std::string same = "arm \"b\" (optim.group.0.lr=0.001) is arm \"a\" (optim.group.0.lr=0.001) over again";
  EXPECT_THAT(second(""), AllOf(HasSubstr("sweep.toml:6:1: "), HasSubstr(same), HasSubstr(" | "), HasSubstr("aa_seeds")));
  EXPECT_THAT(second("set = { \"optim.group.0.beta1\" = 0.9 }\n"), HasSubstr(same)) << "the default";
  EXPECT_THAT(second("set = { \"train.threads\" = 2 }\n"), HasSubstr(same)) << "the same bits for any number";
  EXPECT_THAT(second("set = { \"checkpoint.every\" = 3, \"train.log_every\" = 7 }\n"), HasSubstr(same));
  EXPECT_THAT(second("set = { \"optim.group.0.rule\" = \"sparse_adam\" }\n"), HasSubstr(same)) << "what the base has";
  EXPECT_THAT(second("grid = { \"optim.group.0.lr\" = [1, 3, 10] }\n"),
              HasSubstr("arm \"b\" (optim.group.0.lr=3) is arm \"a\" (optim.group.0.lr=3.0) over again"));
  EXPECT_THAT(second("grid = { \"optim.group.0.beta1\" = [0.9] }\n"), HasSubstr("over again")) << "one more axis that says nothing";
  EXPECT_EQ(second("set = { \"optim.group.0.beta1\" = 0.8 }\n"), "");
  EXPECT_EQ(second("grid = { \"optim.group.0.beta1\" = [0.8, 0.9, 0.95] }\n"), "") << "tuned against the default";
  EXPECT_EQ(second("grid = { \"optim.group.0.lr\" = [0.5, 5] }\n"), "") << "the same setting on another grid: no run twice";
}

TEST(Sweep, refuses_a_point_of_a_grid_that_is_another_over_again) {
  const test::SmallSweep files;
  const auto grid = [&](const std::string& axis) { return refusal(files.write("grid = { " + axis + " }\n", kArm, false)); };
  EXPECT_THAT(grid("\"optim.group.0.lr\" = [0.5, 1, 1.0]"),
              AllOf(HasSubstr("sweep.toml:2:"), HasSubstr("(optim.group.0.lr=1.0) is arm \"a\" (optim.group.0.lr=1) over again"),
                    HasSubstr("aa_seeds")));
  EXPECT_EQ(grid("\"optim.group.0.lr\" = [0.5, 1, 1.5]"), "");
}

TEST(Sweep, repeats_the_baseline_under_seeds_of_its_own) {
  const test::SmallSweep files;
  const Sweep sweep = load_sweep(files.write("aa_seeds = [8, 9]\n", kArm));
  const std::vector<ConfigChange> changes = config_diff(run_config(sweep, 0, 1, 1), run_config(sweep, 0, 1, 8));
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].key, "name");
  EXPECT_EQ(changes[1].key, "train.seed");
}

// Decays act only where weight_decay is not 0.
TEST(Sweep, lets_a_value_of_the_grid_be_idle_at_some_points_but_not_at_all) {
  const test::SmallSweep files;
  const auto grid = [&](const std::string& decays, const std::string& axis, const std::string& arm) -> std::string {
    try {
      load_sweep(files.write("set = { \"optim.group.0.rule\" = \"adamw\" }\ngrid = { \"optim.group.0.weight_decay\" = " + decays +
                                 ", \"optim.group.0.lr\" = [0.1, 0.2]" + axis + " }\n",
                             kArm + arm, false));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const std::string axis = ", \"optim.group.0.decay\" = [\"touched\", \"coupled\"]";
  EXPECT_EQ(grid("[0, 0.1]", axis, ""), "");
  EXPECT_EQ(grid("[0.1, 0]", axis, ""), "");
  const std::string never = "optim.group.0.decay = \"coupled\"";
  EXPECT_THAT(grid("[0]", axis, ""), AllOf(HasSubstr("sweep.toml:3:"), HasSubstr("arm \"a\""), HasSubstr(never)));
  const std::string arm = "set = { \"optim.group.0.decay\" = \"coupled\" }\n";
  EXPECT_EQ(grid("[0, 0.1]", "", arm), "");
  EXPECT_THAT(grid("[0]", "", arm), AllOf(HasSubstr("sweep.toml:7:"), HasSubstr(never)));
}

// A base keeps values for its variants; an arm is about what it sets.
TEST(Sweep, takes_a_base_whose_fields_are_switched_off_and_refuses_an_arm_that_sets_one) {
  const test::SmallSweep files;
  const std::string two = "set = { \"train.schedule.kind\" = \"constant\", \"train.schedule.min_ratio\" = 0.3 }\n";
  EXPECT_EQ(refusal(files.write(two, kArm)), "");
  const std::string arm = "[[arm]]\nname = \"b\"\nset = { \"train.schedule.min_ratio\" = 0.3 }\n";
  EXPECT_THAT(refusal(files.write("set = { \"train.schedule.kind\" = \"constant\" }\n", kArm + arm)),
              AllOf(HasSubstr("arm \"b\""), HasSubstr("train.schedule.min_ratio = 0.3 is not used")));
}

TEST(Sweep, refuses_a_file_whose_name_can_name_no_directory_unless_it_has_a_name) {
  const test::SmallSweep files;
  const std::string text = read_text(files.write(kArm), 1 << 20);
  for (const char* name : {"a\x1b[31m.toml", "a\xff.toml", "...toml"}) {
    const std::string path = files.path(name);
    std::ofstream(path) << text;
    try {
      load_sweep(path);
      ADD_FAILURE() << path << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), HasSubstr("1:1: name must be usable as a directory's name"));
      EXPECT_THAT(e.hint(), HasSubstr("at the top of the sweep"));
    }
    std::ofstream(path) << "name = \"plain\"\n" << text;
    EXPECT_EQ(load_sweep(path).name, "plain");
  }
}

TEST(Sweep, needs_a_base_that_can_be_read) {
  const test::SmallSweep files;
  const std::string path = files.write(kArm);
  std::ofstream(files.path("base.toml")) << "[model]\nn_hed = 2\n";
  try {
    load_sweep(path);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("base.toml:2:1"));
  }
  std::ofstream(path) << "seeds = [1, 2]\n";
  EXPECT_THROW(load_sweep(path), Error);
}

}  // namespace
}  // namespace rowan

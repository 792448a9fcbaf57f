// Settings that would change nothing: which are found, what is said of them, and which act somewhere after all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "optim/optimizer.h"
#include "optim/row_optimizer.h"
#include "train/config.h"

namespace rowan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config config(const std::string& text, const std::vector<std::string>& sets = {}) {
  return parse_config(text, "a.toml", sets);
}

std::vector<std::string> idle_keys(const Config& c) {
  std::vector<std::string> keys;
  for (const IdleSetting& s : idle_settings(c)) keys.push_back(s.keys[0]);
  return keys;
}

std::string refusal(const Config& c) {
  try {
    check_no_idle_settings(c);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    return std::string(e.what()) + " | " + e.hint();
  }
  return "";
}

const std::string kTable = "[[optim.group]]\nparams = \"embed.tokens.weight\"\n";

TEST(IdleSettings, of_rows_on_a_tied_table_say_why_and_what_to_do) {
  EXPECT_THAT(refusal(config(kTable + "untouched = \"frozen\"\n")),
              AllOf(HasSubstr("[config] a.toml:3: optim.group.0.untouched = \"frozen\" is about rows that a batch did not read"),
                    HasSubstr("model.tied = true makes embed.tokens.weight the LM head"), HasSubstr("model.tied = false"),
                    HasSubstr("train.untie_at"), HasSubstr("train.tied_two_source = true"), HasSubstr("untouched = \"dense\"")));
  EXPECT_THAT(refusal(config(kTable + "untouched = \"exact\"\n")),
              AllOf(HasSubstr("untouched = \"exact\""), testing::Not(HasSubstr("two_source"))));  // where it is refused as well
  EXPECT_THAT(refusal(config(kTable + "duplicates = \"mean\"\n")),
              HasSubstr("duplicates = \"mean\" is about the gradients of single"));
  EXPECT_THAT(refusal(config("[optim]\nuntouched = \"exact\"\n")), HasSubstr("a.toml:2: optim.untouched = \"exact\""));
}

// A row's own count acts in bias corrections and the like; rules without any would only keep a number a row.
TEST(IdleSettings, of_a_rows_own_count_are_found_where_nothing_depends_on_it) {
  const std::string rows = kTable + "untouched = \"frozen\"\ncounter = \"row\"\n";
  const auto with = [&](const std::string& rule, const std::string& more = "") {
    return idle_keys(config(rows + "rule = \"" + rule + "\"\n" + more, {"model.tied=false"}));
  };
  for (const char* rule : {"sgd", "lion", "adagrad", "rowwise_adagrad", "sm3", "rmsprop"})
    EXPECT_THAT(with(rule), ElementsAre("optim.group.0.counter")) << rule;
  for (const char* rule : {"adam", "adamw", "amsgrad", "nadam", "partial_rowwise_adam", "adafactor"})
    EXPECT_THAT(with(rule), IsEmpty()) << rule;
  EXPECT_THAT(with("sgd", "momentum = 0.9\n"), ElementsAre("optim.group.0.counter"));
  EXPECT_THAT(with("sgd", "momentum = 0.9\ndampening = 0.5\n"), IsEmpty()) << "a row's first gradient is not dampened";
}

// Every rule that is for touched rows by itself, the presets among them, whoever registers one.
TEST(IdleSettings, of_rows_on_a_tied_table_that_shares_its_group_with_position_rows_say_how_these_can_have_them) {
  const std::string both = "[[optim.group]]\nparams = \"embed.*\"\nuntouched = \"frozen\"\n";
  EXPECT_THAT(refusal(config(both, {"model.tied=true", "model.positions=learned"})),
              HasSubstr("params = \"embed.positions.weight\""));
  EXPECT_THAT(idle_keys(config("[[optim.group]]\nparams = \"embed.positions.weight\"\nuntouched = \"frozen\"\n",
                               {"model.tied=true", "model.positions=learned"})),
              IsEmpty());
  EXPECT_THAT(idle_keys(config(both, {"model.tied=true", "model.positions=rope"})), ElementsAre("optim.group.0.untouched"));
}

TEST(IdleSettings, decay_of_the_lookup_of_two_sources_is_that_of_the_head) {
  const std::string decay = "weight_decay = 0.3\n", two = "train.tied_two_source=true";
  EXPECT_THAT(idle_keys(config(kTable + decay, {two, "optim.weight_decay=0.1"})), ElementsAre("optim.group.0.weight_decay"));
  EXPECT_THAT(idle_keys(config("[[optim.group]]\nparams = \"embed.*\"\n" + decay,
                               {two, "optim.weight_decay=0.1", "model.positions=learned"})),
              IsEmpty());
  EXPECT_THAT(idle_keys(config("[optim]\n" + decay, {two})), IsEmpty());
}

TEST(IdleSettings, a_decay_of_minus_zero_is_none) {
  EXPECT_THAT(idle_keys(config("", {"optim.weight_decay=-0.0", "optim.decay=coupled"})), ElementsAre("optim.decay"));
}

TEST(IdleSettings, presets_for_touched_rows_are_refused_on_a_tied_table) {
  int refused = 0;
  for (const std::string& rule : optimizer_rules()) {
    const auto optimizer = make_optimizer(rule);
    const auto* rows = dynamic_cast<const RowOptimizer*>(optimizer.get());
    if (rows == nullptr || optimizer->sparse_only()) continue;  // refused for any config
    const std::string text = refusal(config(kTable + "rule = \"" + rule + "\"\n"));
    if (rows->axes().untouched == "dense") {
      EXPECT_EQ(text, "") << rule;
      continue;
    }
    ++refused;
    EXPECT_THAT(text,
                AllOf(HasSubstr("a.toml:3: "), HasSubstr("of rule \"" + rule + "\""), HasSubstr("another rule, such as adamw")));
    EXPECT_EQ(refusal(config(kTable + "rule = \"" + rule + "\"\n", {"model.tied=false"})), "") << rule;
  }
  EXPECT_GE(refused, 6);
}

TEST(IdleSettings, of_rows_act_on_a_table_that_is_untied_later_or_updated_from_two_sources) {
  for (const char* untouched : {"frozen", "exact"})
    EXPECT_THAT(idle_keys(config(kTable + "untouched = \"" + untouched + "\"\n", {"train.untie_at=10"})), IsEmpty()) << untouched;
  EXPECT_THAT(idle_keys(config(kTable + "untouched = \"frozen\"\n", {"train.tied_two_source=true"})), IsEmpty());
  EXPECT_THAT(idle_keys(config(kTable + "rule = \"dgl_sparse_adam\"\n", {"train.tied_two_source=true"})), IsEmpty());
}

TEST(IdleSettings, of_rows_need_a_parameter_that_is_updated_by_rows) {
  const std::string head = "[[optim.group]]\nparams = \"head.weight\"\nuntouched = \"frozen\"\n";
  EXPECT_THAT(refusal(config(head, {"model.tied=false"})),
              AllOf(HasSubstr("optim.group.0.untouched = \"frozen\" is never used"), HasSubstr("train.loss = \"sampled\"")));
  EXPECT_EQ(refusal(config(head, {"model.tied=false", "train.loss=sampled"})), "");
  const std::string blocks = "[[optim.group]]\nparams = \"blocks.*\"\n";
  EXPECT_THAT(idle_keys(config(blocks + "untouched = \"exact\"\n")), ElementsAre("optim.group.0.untouched"));
  // [optim] has it for the tables, and the group only goes by [optim].
  EXPECT_THAT(idle_keys(config("[optim]\nuntouched = \"exact\"\n" + blocks, {"model.tied=false"})), IsEmpty());
  EXPECT_THAT(idle_keys(config("[optim]\nuntouched = \"exact\"\n[[optim.group]]\nparams = \"embed.*\"\n", {"model.tied=false"})),
              IsEmpty());
  EXPECT_THAT(idle_keys(config("[[optim.group]]\nparams = \"embed.positions.*\"\nuntouched = \"frozen\"\n")), IsEmpty());
}

TEST(IdleSettings, of_sampled_softmax_need_it) {
  EXPECT_THAT(refusal(config("[train.sampled]\nnegatives = 64\n")),
              AllOf(HasSubstr("a.toml:2: train.sampled.negatives = 64 is never used: train.loss = \"full\""),
                    HasSubstr("set train.loss = \"sampled\"")));
  EXPECT_THAT(idle_keys(config("[train.sampled]\nsampler = \"uniform\"\nnegatives = 64\n")),
              ElementsAre("train.sampled.sampler", "train.sampled.negatives"));
  EXPECT_THAT(idle_keys(config("[train.sampled]\nnegatives = 64\n", {"train.loss=sampled", "model.tied=false"})), IsEmpty());
}

TEST(IdleSettings, an_untying_after_the_last_step_is_one) {
  EXPECT_THAT(refusal(config("[train]\nsteps = 10\nuntie_at = 11\n")),
              AllOf(HasSubstr("a.toml:3, a.toml:2: train.untie_at = 11 is after the last step, train.steps = 10"),
                    HasSubstr("at most train.steps")));
  EXPECT_EQ(refusal(config("[train]\nsteps = 10\nuntie_at = 10\n")), "");
}

TEST(IdleSettings, of_a_rule_need_the_settings_that_they_go_with) {
  const auto keys = [](const std::string& optim) { return idle_keys(config("[optim]\n" + optim, {"model.tied=false"})); };
  EXPECT_THAT(keys("clip_bound = 0.5\n"), ElementsAre("optim.clip_bound"));
  EXPECT_THAT(keys("clip = \"row_norm\"\nclip_floor = 0.5\n"), ElementsAre("optim.clip_floor"));
  EXPECT_THAT(keys("clip = \"row_norm\"\nclip_bound = 0.5\n"), IsEmpty());
  EXPECT_THAT(keys("sweep_above = 0.5\n"), ElementsAre("optim.sweep_above"));
  EXPECT_THAT(keys("sweep_above = 0.5\nuntouched = \"exact\"\n"), IsEmpty());
  EXPECT_THAT(keys("sweep_above = 0.5\nuntouched = \"exact\"\ncatch_up = \"closed\"\n"), ElementsAre("optim.sweep_above"));
  EXPECT_THAT(keys("decay = \"coupled\"\nweight_decay = 0\n"), ElementsAre("optim.decay"));
  EXPECT_THAT(keys("decay = \"none\"\nweight_decay = 0\n"), IsEmpty()) << "says what is the case";
  EXPECT_THAT(keys("decay = \"coupled\"\nweight_decay = 0.1\n"), IsEmpty());
  EXPECT_THAT(keys("decay_vectors = true\nweight_decay = 0\n"), ElementsAre("optim.decay_vectors"));
  EXPECT_THAT(keys("rule = \"sgd\"\ndampening = 0.5\n"), ElementsAre("optim.dampening"));
  EXPECT_THAT(keys("rule = \"sgd\"\ndampening = 0.5\nmomentum = 0.5\n"), IsEmpty());
}

TEST(IdleSettings, a_value_that_acts_in_one_group_may_stand_for_all) {
  const std::string shared = "[optim]\nclip_bound = 0.5\n";
  const std::string positions = "[[optim.group]]\nparams = \"embed.positions.*\"\nclip = \"value\"\n";
  EXPECT_THAT(idle_keys(config(shared + positions)), IsEmpty());
  EXPECT_THAT(idle_keys(config(shared + positions + "clip_bound = 0.7\n")), ElementsAre("optim.clip_bound"));
}

TEST(IdleSettings, of_a_group_that_takes_no_parameter_are_refused_with_their_place) {
  const auto groups = [](const std::string& first, const std::string& second) {
    const std::string group = "[[optim.group]]\nparams = ";
    return refusal(config(group + first + "\n" + group + second + "\n"));
  };
  EXPECT_THAT(
      groups("\"blocks.*\"", "\"nothing.*\""),
      AllOf(HasSubstr("a.toml:4: optim.group.1.params = \"nothing.*\" matches no parameter; there are: embed.tokens.weight")));
  EXPECT_THAT(groups("\"embed.token.weight\"", "\"blocks.*\""),
              AllOf(HasSubstr("a.toml:2: "), HasSubstr("did you mean 'embed.tokens.weight'?")));
  EXPECT_THAT(groups("\"blocks.*\"", "\"blocks.0.*\""),
              AllOf(HasSubstr("a.toml:4: "), HasSubstr("takes no parameter"), HasSubstr("earlier group 'blocks.*'")));
  EXPECT_THAT(groups("\"*\"", "\"*\""), AllOf(HasSubstr("earlier group '*'"), HasSubstr("put the narrower group first")));
  EXPECT_THAT(groups("\"blocks.*\"", "\"head.*\""), AllOf(HasSubstr("matches no parameter"), HasSubstr("the head is tied")));
  EXPECT_THAT(refusal(config("[[optim.group]]\nparams = \"embed.positions.weight\"\n", {"model.positions=rope"})),
              HasSubstr("only model.positions = \"learned\" has a table"));
  EXPECT_EQ(refusal(config("[[optim.group]]\nparams = \"head.*\"\n", {"model.tied=false"})), "");
  EXPECT_EQ(refusal(config("[[optim.group]]\nparams = \"head.*\"\n", {"train.untie_at=3"})), "") << "later";
}

TEST(IdleSettings, of_rows_are_found_in_groups_that_take_none_and_where_a_head_is_untied_after_the_last_step) {
  const std::string blocks = "[[optim.group]]\nparams = \"blocks.*\"\nuntouched = \"frozen\"\n";
  const auto keys = [](const std::string& text) { return idle_keys(config(text, {"model.tied=false"})); };
  EXPECT_THAT(keys(blocks + "counter = \"row\"\n"), ElementsAre("optim.group.0.untouched", "optim.group.0.counter"));
  const std::string exact = "[[optim.group]]\nparams = \"blocks.*\"\nuntouched = \"exact\"\n";
  EXPECT_THAT(keys(exact + "catch_up = \"closed\"\n"), ElementsAre("optim.group.0.untouched", "optim.group.0.catch_up"));
  EXPECT_THAT(keys(exact + "sweep_above = 0.9\n"), ElementsAre("optim.group.0.untouched", "optim.group.0.sweep_above"));
  const auto untied = [](int64_t at) {
    const std::string text = kTable + "duplicates = \"mean\"\n";
    return idle_keys(config(text, {"train.steps=10", "train.untie_at=" + std::to_string(at)}));
  };
  EXPECT_THAT(untied(9), IsEmpty());
  EXPECT_THAT(untied(10), ElementsAre("optim.group.0.duplicates"));
}

// Fields outside of [optim] are said and not refused: a base config has values for variants of it.
TEST(IdleSettings, of_fields_whose_switch_is_off_are_said_and_not_refused) {
  const auto said = [](const std::vector<std::string>& sets) {
    const Config c = config("", sets);
    check_no_idle_settings(c);
    std::string all;
    for (const IdleSetting& s : idle_settings(c)) all += s.what + "\n";
    return all;
  };
  EXPECT_EQ(said({"model.rope.theta=500", "model.positions=learned"}),
            "model.rope.theta = 500.0 is not used: model.positions = \"learned\"\n");
  EXPECT_EQ(said({"model.rope.theta=500", "model.positions=rope"}), "");
  EXPECT_EQ(said({"train.schedule.kind=constant", "train.schedule.min_ratio=0.3"}),
            "train.schedule.min_ratio = 0.3 is not used: train.schedule.kind = \"constant\"\n");
  EXPECT_EQ(said({"train.spike.z=3"}), "train.spike.z = 3.0 is not used: train.spike.window = 0\n");
  EXPECT_EQ(said({"train.spike.z=3", "train.spike.window=9"}), "");
  EXPECT_EQ(said({"train.sample_prompt=a"}), "train.sample_prompt = \"a\" is not used: train.sample_every = 0\n");
  EXPECT_EQ(said({"data.val=b", "data.val_fraction=0.2"}), "data.val_fraction = 0.2 is not used: data.val = [\"b\"]\n");
  EXPECT_EQ(said({"data.zipf.noise=0"}), "data.zipf.noise = 0.0 is not used: data.train = []\n");
  const std::vector<std::string> zipf = {"data.train=builtin:zipf", "data.zipf.burst_length=3"};
  EXPECT_EQ(said(zipf), "data.zipf.burst_length = 3 is not used: data.zipf.burst_every = 0\n");
  EXPECT_EQ(said({zipf[0], zipf[1], "data.zipf.burst_every=9", "data.order=sequential"}), "");
  EXPECT_EQ(said({zipf[0], "data.tokenizer=byte"}), "data.tokenizer = \"byte\" is not used: data.train = [\"builtin:zipf\"]\n");
}

// A resolved copy says every field, as if somebody had set it.
TEST(IdleSettings, a_resolved_copy_has_those_of_the_config_it_is_a_copy_of) {
  for (const Config& c :
       {config("", {"train.untie_at=3"}), config("[optim]\nclip_bound = 0.5\n[[optim.group]]\nparams = \"*\"\nclip = \"value\"\n"),
        config(kTable + "rule = \"tf_lazy_adam\"\n", {"model.tied=false"}), config("[train.sampled]\nnegatives = 64\n")})
    EXPECT_EQ(idle_keys(config(resolved_toml(c))), idle_keys(c));
}

TEST(IdleSettings, shipped_configs_have_none) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ROWAN_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".toml" || entry.path().filename() == "embedding.toml") continue;
    ++files;
    EXPECT_THAT(idle_keys(load_config(entry.path())), IsEmpty()) << entry.path();
  }
  EXPECT_GE(files, 9);
}

}  // namespace
}  // namespace rowan

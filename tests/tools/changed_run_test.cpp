// What may change between save and resume: each change is allowed and said, or refused by name, and then nothing has changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/changed_checkpoint.h"
#include "tests/support/command_run.h"

namespace rowan::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Change {
  std::string set;
  int exit_code;
  std::string message;  // on stdout when allowed, on stderr when refused
};

TEST(ChangedRun, settings_are_allowed_and_said_or_refused_by_name) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=2"}).exit_code, 0);
  const std::string before = run.digest("a");
  std::filesystem::copy(run.path("text.txt"), run.path("moved.txt"));
  run.write("longer.txt", small_text() + "the end\n");
  std::string shuffled = small_text();
  std::swap(shuffled[0], shuffled[1]);
  run.write("shuffled.txt", shuffled);
  ASSERT_EQ(CommandRun::rowan({"prepare", run.path("text.txt"), "--out", run.path("same.tok")}).exit_code, 0);
  ASSERT_EQ(CommandRun::rowan({"prepare", run.path("text.txt"), "--out", run.path("byte.tok"), "--tokenizer", "byte"}).exit_code,
            0);
  const std::vector<Change> table = {
      {"data.train=" + run.path("moved.txt"), 0, "changed    data.train = "},
      {"data.train=" + run.path("same.tok"), 0, "changed    data.train = "},
      {"data.train=" + run.path("longer.txt"), 1, "the checkpoint was made with fingerprint"},
      {"data.train=" + run.path("shuffled.txt"), 1, "the checkpoint was made with fingerprint"},
      {"data.train=" + run.path("byte.tok"), 1, "was made with another tokenizer (byte, 256 ids)"},
      {"data.train=" + run.path("gone.txt"), 1, "gone.txt': No such file"},
      {"data.tokenizer=byte", 2, "data.tokenizer from \"char\" to \"byte\""},
      {"data.seq_len=8", 2, "data.seq_len from 12 to 8"},
      {"data.batch_size=4", 2, "data.batch_size from 3 to 4"},
      {"data.order=random", 2, "data.order from \"shuffled\" to \"random\""},
      {"data.val_fraction=0.2", 2, "data.val_fraction from 0.1 to 0.2"},
      {"model.d_model=32", 2, "model.d_model from 16 to 32"},
      {"model.n_layer=3", 2, "model.n_layer from 2 to 3"},
      {"model.n_head=4", 2, "model.n_head from 2 to 4"},
      {"model.max_seq_len=24", 2, "model.max_seq_len from 12 to 24"},
      {"model.vocab_size=64", 2, "model.vocab_size from 19 to 64"},
      {"model.tied=true", 2, "model.tied from false to true"},
      {"model.positions=rope", 2, "model.positions from \"learned\" to \"rope\""},
      {"model.dropout=0.5", 2, "model.dropout from 0.0 to 0.5"},
      {"optim.rule=sgd", 2, "optim.rule from \"adamw\" to \"sgd\""},
      {"optim.lr=1", 2, "optim.lr from 0.01 to 1.0"},
      {"optim.group.0.params=embed.*", 2, "optim.group.0.params from (absent) to \"embed.*\""},
      {"train.seed=8", 2, "train.seed from 7 to 8"},
      {"train.grad_accum=2", 2, "train.grad_accum from 1 to 2"},
      {"train.clip_norm=2", 2, "train.clip_norm from 1.0 to 2.0"},
      {"train.schedule.kind=wsd", 2, "train.schedule.kind from \"constant\" to \"wsd\""},
      {"train.steps=1", 2, "the run is at step 2"},
      {"train.threads=2", 0, "changed    train.threads = 2 (was 1)"},
      {"train.log_every=2", 0, "changed    train.log_every = 2"},
      {"train.on_nonfinite=skip", 0, "changed    train.on_nonfinite = \"skip\" (was \"stop\"): from here on"},
      {"train.spike.window=9", 0, "changed    train.spike.window = 9 (was 0): from here on"},
      {"checkpoint.keep_last=1", 0, "changed    checkpoint.keep_last = 1"},
      {"checkpoint.background=true", 0, "changed    checkpoint.background = true (was false)"},
  };
  for (const Change& change : table) {
    const CommandResult r = run.resume("a", {change.set});
    EXPECT_EQ(r.exit_code, change.exit_code) << change.set << r.err;
    EXPECT_THAT(change.exit_code == 0 ? r.out : r.err, HasSubstr(change.message)) << change.set;
    EXPECT_EQ(change.exit_code != 0, r.out.empty()) << change.set;
    EXPECT_EQ(run.digest("a"), before) << change.set;
  }
}

TEST(ChangedRun, a_corpus_that_changed_in_its_place_is_refused) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=2"}).exit_code, 0);
  std::string text = small_text();
  text[100] = text[100] == 'e' ? 'a' : 'e';
  run.write("text.txt", text);
  const CommandResult r = run.resume("a", {"train.steps=4"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.err, HasSubstr("fingerprint"));
  EXPECT_THAT(r.err, HasSubstr(run.path("text.txt")));
  EXPECT_THAT(r.err, HasSubstr("\nhint: resume with the same data"));
}

TEST(ChangedRun, another_machine_is_said) {
  const CommandRun run;
  // OpenBLAS takes the kernels of two old processors. It takes the oldest by itself where the processor is newer than it knows.
  const auto on = [](const std::string& processor, const std::vector<std::string>& arguments) {
    return CommandRun::rowan(arguments, {.environment = {{"OPENBLAS_CORETYPE", processor}}});
  };
  ASSERT_EQ(on("Nehalem", run.train_arguments("a", {"train.steps=2"})).exit_code, 0);
  EXPECT_THAT(on("Nehalem", {"resume", run.path("a")}).out, Not(HasSubstr("machine ")));
  const CommandResult r = on("Prescott", {"resume", run.path("a")});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("machine    "));
  EXPECT_THAT(r.out, HasSubstr("the last bits may differ"));
}

// A new run with an untying after its last step is refused; one that goes on for fewer steps than were planned is not.
TEST(ChangedRun, fewer_steps_than_an_untying_was_planned_for_are_allowed) {
  const CommandRun run;
  const auto arguments = [&](const std::string& name, const std::string& steps) {
    return run.train_arguments(
        name, {"model.tied=true", "train.untie_at=6", "checkpoint.every=2", "checkpoint.keep_last=9", "train.steps=" + steps});
  };
  const CommandResult refused = CommandRun::rowan(arguments("a", "4"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("train.untie_at = 6 is after the last step, train.steps = 4"));
  EXPECT_FALSE(run.exists("a"));
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(CommandRun::rowan(arguments(name, "8")).exit_code, 0);
    for (const int step : {4, 6, 8})  // as if it had been killed after step 2
      ASSERT_TRUE(
          std::filesystem::remove(run.path(std::string(name) + "/checkpoints/step-000000000" + std::to_string(step) + ".h5")));
  }
  const CommandResult resumed = run.resume("a", {"train.steps=4"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, HasSubstr("changed    train.steps = 4 (was 8)"));
  std::vector<std::string> again = arguments("b", "4");
  again.emplace_back("--resume");
  const CommandResult trained = CommandRun::rowan(again);
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_EQ(run.digest("a"), run.digest("b"));
}

TEST(ChangedRun, another_treatment_of_denormals_is_said) {
  const CommandRun run;
  const CommandResult trained = run.train("a", {"train.steps=2"});
  ASSERT_EQ(trained.exit_code, 0);
  EXPECT_THAT(trained.out, HasSubstr("\ndenormals  flushed to zero\n"));
  EXPECT_EQ(run.events("a", "start").at(0).at("denormals"), "flushed to zero");
  const std::string file = run.path("a/checkpoints/step-0000000002.h5");
  const auto resume_with = [&](const std::optional<std::string>& saved) {
    publish_changed(Checkpoint::open(file), "/train/denormals", saved, file);
    const CommandResult r = run.resume("a");
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.out;
  };
  EXPECT_EQ(Checkpoint::open(file).text("/train/denormals"), "flushed to zero");
  EXPECT_THAT(resume_with("flushed to zero"), Not(HasSubstr("may differ")));
  EXPECT_THAT(resume_with({}), Not(HasSubstr("may differ")));  // a version that did not say so flushed them
  EXPECT_THAT(resume_with("kept"), HasSubstr("denormals  flushed to zero (was kept): the last bits may differ"));
}

}  // namespace
}  // namespace rowan::test

// rowan train and rowan resume, as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>

#include "core/real.h"
#include "tests/support/command_run.h"
#include "train/digest.h"

namespace rowan::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Train, writes_the_files_that_a_run_consists_of) {
  const CommandRun run;
  const CommandResult r = run.train("a", {"train.eval_every=5", "checkpoint.every=4"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_THAT(run.names_in("a"), ElementsAre("best.h5", "checkpoints", "config.toml", "metrics.jsonl", "tokenizer.json"));
  EXPECT_THAT(run.names_in("a/checkpoints"), ElementsAre("step-0000000005.h5", "step-0000000008.h5", "step-0000000010.h5"));
  EXPECT_THAT(read_all(run.path("a/config.toml")), HasSubstr("\nd_model = 16 "));
  EXPECT_EQ(CommandRun::rowan({"inspect", "--verify", run.path("a")}).exit_code, 0);
  EXPECT_EQ(run.digest("a").size(), 33u);  // 32 hexadecimal digits and the end of the line, nothing else
}

TEST(Train, logs_each_step_once_with_the_fields_that_tools_read) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.eval_every=5"}).exit_code, 0);
  const auto steps = run.events("a", "train");
  ASSERT_EQ(steps.size(), 10u);
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].at("step"), i + 1);
    EXPECT_EQ(steps[i].at("tokens"), 36 * (i + 1));
    for (const char* field : {"loss", "lr", "grad_norm", "tokens_per_s", "step_ms"}) EXPECT_GT(steps[i].at(field), 0) << field;
    EXPECT_EQ(steps[i].at("touched_rows").at("embed.positions.weight"), 12);
    const auto& update = steps[i].at("updates").at("embed.positions.weight");
    EXPECT_EQ(update.at("touched"), 12);
    EXPECT_EQ(update.at("share"), 1);
    for (const char* field : {"longest_run", "updated", "bytes", "gb_per_s"}) EXPECT_GT(update.at(field), 0) << field;
  }
  const auto evals = run.events("a", "eval");
  ASSERT_EQ(evals.size(), 2u);
  EXPECT_NEAR(evals[1].at("perplexity").get<double>(), std::exp(evals[1].at("loss").get<double>()), 1e-9);
  EXPECT_EQ(run.events("a", "start").size(), 1u);
  EXPECT_EQ(run.events("a", "end").at(0).at("reason"), "done");
}

TEST(Train, resumed_to_twice_the_steps_is_the_run_that_never_stopped) {
  const CommandRun run;
  ASSERT_EQ(run.train("whole", {"train.steps=12"}).exit_code, 0);
  ASSERT_EQ(run.train("parts", {"train.steps=6"}).exit_code, 0);
  const CommandResult r = run.resume("parts", {"train.steps=12"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("changed    train.steps = 12 (was 6)"));
  EXPECT_EQ(run.digest("whole"), run.digest("parts"));
  EXPECT_EQ(run.losses("whole"), run.losses("parts"));
  // The same through train --resume, which also begins a run that is not there.
  std::vector<std::string> again = run.train_arguments("third", {"train.steps=6"});
  again.push_back("--resume");
  ASSERT_EQ(CommandRun::rowan(again).exit_code, 0);
  again = run.train_arguments("third", {"train.steps=12"});
  again.push_back("--resume");
  const CommandResult third = CommandRun::rowan(again);
  ASSERT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(run.digest("whole"), run.digest("third"));
}

TEST(Train, has_the_same_digest_for_any_number_of_threads) {
  const CommandRun run;
  std::vector<std::string> digests;
  for (const char* threads : {"1", "1", "2", "4"}) {
    const std::string name = "run" + std::to_string(digests.size());
    const CommandResult r = run.train(name, {"train.steps=50", std::string("train.threads=") + threads, "model.dropout=0.1"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    digests.push_back(run.digest(name));
  }
  EXPECT_THAT(digests, ElementsAre(digests[0], digests[0], digests[0], digests[0]));
  EXPECT_EQ(run.losses("run0"), run.losses("run3"));
}

TEST(Train, leaves_an_existing_run_alone_unless_told) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const std::string before = run.digest("a");
  const CommandResult refused = run.train("a", {"train.seed=8"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("a' holds a run already\nhint: go on with it: `rowan resume"));
  EXPECT_EQ(run.digest("a"), before);
  std::vector<std::string> overwrite = run.train_arguments("a", {"train.seed=8"});
  overwrite.push_back("--overwrite");
  EXPECT_EQ(CommandRun::rowan(overwrite).exit_code, 0);
  EXPECT_NE(run.digest("a"), before);
  EXPECT_EQ(run.losses("a").size(), 10u);
}

TEST(Train, a_run_that_is_done_stays_as_it_is_when_resumed) {
  const CommandRun run;
  ASSERT_EQ(run.train("a").exit_code, 0);
  const std::string before = run.digest("a");
  EXPECT_EQ(run.resume("a").exit_code, 0);
  EXPECT_EQ(run.digest("a"), before);
  EXPECT_EQ(run.losses("a").size(), 10u);
}

TEST(Train, resume_begins_a_run_again_that_died_before_its_first_checkpoint_and_removes_nothing) {
  const CommandRun run;
  ASSERT_EQ(run.train("whole").exit_code, 0);
  ASSERT_EQ(run.train("a", {"train.steps=1"}).exit_code, 0);
  for (const std::string& name : run.names_in("a/checkpoints")) std::filesystem::remove(run.path("a/checkpoints/" + name));
  std::filesystem::remove(run.path("a/best.h5"));
  run.write("a/notes.txt", "mine");
  std::vector<std::string> again = run.train_arguments("a");
  again.push_back("--resume");
  const CommandResult r = CommandRun::rowan(again);
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.digest("a"), run.digest("whole"));
  EXPECT_TRUE(std::filesystem::exists(run.path("a/notes.txt")));
}

// The folder for checkpoints is the first thing that a run makes; the config may not be there yet.
TEST(Train, resume_begins_a_run_that_was_killed_as_it_began) {
  const CommandRun run;
  ASSERT_EQ(run.train("whole").exit_code, 0);
  std::filesystem::create_directories(run.path("a/checkpoints"));
  EXPECT_THAT(run.resume("a").err, AllOf(HasSubstr("has no checkpoint yet"), HasSubstr("--resume")));
  std::vector<std::string> again = run.train_arguments("a");
  again.push_back("--resume");
  EXPECT_EQ(CommandRun::rowan(again).exit_code, 0);
  EXPECT_EQ(run.digest("a"), run.digest("whole"));
}

TEST(Train, files_that_only_look_like_a_runs_are_not_touched) {
  const CommandRun run;
  std::filesystem::create_directories(run.path("mine"));
  run.write("mine/config.toml", "# mine");
  run.write("mine/.tmp-notes", "precious");
  for (const char* flag : {"--resume", "--overwrite"}) {
    std::vector<std::string> arguments = run.train_arguments("mine");
    arguments.push_back(flag);
    EXPECT_EQ(CommandRun::rowan(arguments).exit_code, 2) << flag;
  }
  EXPECT_EQ(read_all(run.path("mine/config.toml")), "# mine");
  EXPECT_EQ(run.names_in("mine"), (std::vector<std::string>{".tmp-notes", "config.toml"}));
  std::filesystem::create_directories(run.path("other/checkpoints"));  // of another program
  for (const char* name : {"other/checkpoints/model.pt", "other/tokenizer.json", "other/config.toml"}) run.write(name, "mine");
  for (const char* flag : {"--resume", "--overwrite"}) {
    std::vector<std::string> arguments = run.train_arguments("other");
    arguments.push_back(flag);
    EXPECT_EQ(CommandRun::rowan(arguments).exit_code, 2) << flag;
  }
  for (const char* name : {"other/checkpoints/model.pt", "other/tokenizer.json", "other/config.toml"})
    EXPECT_EQ(read_all(run.path(name)), "mine") << name;
  // In a run's own folder only what a run makes is removed.
  ASSERT_EQ(run.train("a").exit_code, 0);
  std::filesystem::create_directories(run.path("a/capsules"));
  for (const char* name : {"a/tokenizer.py", "a/capsules/mine.txt", "a/.tmp-notes"}) run.write(name, "mine");
  std::vector<std::string> anew = run.train_arguments("a");
  anew.push_back("--overwrite");
  EXPECT_EQ(CommandRun::rowan(anew).exit_code, 0);
  for (const char* name : {"a/tokenizer.py", "a/capsules/mine.txt", "a/.tmp-notes"})
    EXPECT_EQ(read_all(run.path(name)), "mine") << name;
}

TEST(Train, says_when_only_one_core_works_and_what_bound_it_to_that) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  const CommandRun run;
  std::vector<std::string> command = {"taskset", "-c", std::to_string(core), ROWAN_BINARY};
  for (const std::string& argument : run.train_arguments("a", {"train.threads=0", "train.steps=1"})) command.push_back(argument);
  const CommandResult r = run_command(command, {.environment = {{"OMP_PROC_BIND", "true"}}});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.err, AllOf(HasSubstr("only one core may be used here"), HasSubstr("OMP_PROC_BIND is set")));
}

TEST(Train, a_limit_on_the_size_of_files_is_an_error_as_a_full_device_is) {
  const CommandRun run;
  std::vector<std::string> command = {"/bin/sh", "-c", "ulimit -f 8; exec \"$@\"", "sh", ROWAN_BINARY};
  for (const std::string& argument : run.train_arguments("a")) command.push_back(argument);
  const CommandResult r = run_command(command, {});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.err, HasSubstr("EFBIG"));
  EXPECT_TRUE(run.names_in("a/checkpoints").empty());
}

TEST(Train, a_log_that_cannot_be_written_does_not_keep_checkpoints_from_being_saved) {
  const CommandRun run;
  ASSERT_EQ(run.train("whole").exit_code, 0);
  ASSERT_EQ(run.train("a", {"train.steps=2"}).exit_code, 0);
  std::filesystem::remove(run.path("a/metrics.jsonl"));
  std::filesystem::create_symlink("/dev/null", run.path("a/metrics.jsonl"));
  const CommandResult r = run.resume("a", {"train.steps=10"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.digest("a"), run.digest("whole"));
}

TEST(Train, a_checkpoint_of_a_newer_rowan_is_neither_passed_over_nor_replaced) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"checkpoint.every=2", "train.steps=4"}).exit_code, 0);
  const std::string newest = run.path("a/checkpoints/step-0000000004.h5");
  std::string bytes = read_all(newest);
  const uint32_t version = 2;
  bytes.replace(8, sizeof version, reinterpret_cast<const char*>(&version), sizeof version);
  const uint64_t sum = hash64(bytes.data(), 56);
  bytes.replace(56, sizeof sum, reinterpret_cast<const char*>(&sum), sizeof sum);
  std::ofstream(newest, std::ios::binary) << bytes;
  for (const char* command : {"resume", "eval", "inspect"}) {
    const CommandResult r = CommandRun::rowan({command, run.path("a")});
    EXPECT_EQ(r.exit_code, 1) << command;
    EXPECT_THAT(r.err, HasSubstr("format version 2")) << command;
  }
  EXPECT_THAT(CommandRun::rowan({"inspect", "--verify", run.path("a")}).out, Not(HasSubstr("DAMAGED")));
  EXPECT_EQ(read_all(newest), bytes);
}

TEST(Train, stops_with_code_3_when_the_loss_is_not_finite_and_keeps_the_checkpoint) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=3"}).exit_code, 0);
  const std::string good = run.digest("a");
  const CommandResult r = run.train("b", {"optim.lr=1e30", "train.clip_norm=0", "checkpoint.every=1"});
  EXPECT_EQ(r.exit_code, 3);
  // Weights of 1e30 overflow in the forward pass in float; in double only in the backward pass.
  const std::string what = kRealIsDouble ? "the gradient of embed.tokens.weight is not finite" : "the loss is nan";
  EXPECT_THAT(r.err,
              HasSubstr("rowan: error: [train] " + what + " at step 2; stopped before the update. The last good checkpoint"));
  EXPECT_THAT(r.err, HasSubstr("\nhint: lower the learning rate"));
  EXPECT_EQ(run.events("b", "end").at(0).at("reason"), "not finite");
  EXPECT_THAT(run.names_in("b/checkpoints"), ElementsAre("step-0000000001.h5"));
  EXPECT_EQ(run.digest("a"), good);
}

TEST(Train, takes_paths_with_spaces_and_other_scripts) {
  const CommandRun run;
  std::filesystem::create_directory(run.path("ü n"));
  std::filesystem::copy(run.path("text.txt"), run.path("ü n/ tëxt.txt"));
  const CommandResult r = run.train("ü n/läuft hier", {"data.train=" + run.path("ü n/ tëxt.txt"), "train.steps=2"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(run.resume("ü n/läuft hier", {"train.steps=3"}).exit_code, 0);
}

TEST(Train, control_characters_of_names_do_not_reach_the_terminal) {
  const CommandRun run;
  const std::string name = "a\x1b[2J\nb";
  const CommandResult r = run.train(name, {"train.steps=3"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const CommandResult again = run.resume(name, {"train.steps=4", "train.sample_prompt=c\u009b\x1b"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr(R"("c\u009B\u001B")"));
  for (const std::string& out : {r.out, again.out}) {
    for (const char* raw : {"\x1b", "\u009b", "\nb"}) EXPECT_THAT(out, Not(HasSubstr(raw)));
    EXPECT_THAT(out, HasSubstr(R"(a\u001B[2J\nb)"));
  }
}

TEST(Train, warnings_of_a_run_whose_name_holds_control_characters_keep_to_their_lines) {
  const CommandRun run;
  const std::string name = "a\x1b[2J\nb";
  ASSERT_EQ(run.train(name, {"train.steps=3"}).exit_code, 0);
  std::filesystem::remove(run.path(name) + "/best.h5");
  std::filesystem::create_directory(run.path(name) + "/best.h5");  // so that saving it fails
  const CommandResult r = run.resume(name, {"train.steps=6", "train.eval_every=1"});
  EXPECT_THAT(r.out, HasSubstr("warning: "));
  EXPECT_THAT(r.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(r.out, Not(HasSubstr("\nb")));
}

TEST(Train, a_second_writer_is_refused_by_pid) {
  const CommandRun run;
  StartedCommand first = run.start(run.train_arguments("a", {"train.steps=1000000"}));
  ASSERT_TRUE(StartedCommand::wait_until([&] { return run.exists("a/metrics.jsonl") && !run.losses("a").empty(); }));
  const CommandResult second = run.resume("a");
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr(std::to_string(first.pid())));
  first.send(SIGTERM);
  EXPECT_EQ(first.wait().exit_code, 143);
  EXPECT_EQ(run.resume("a", {"train.steps=1"}).exit_code, 2);  // fewer steps than are done
}

TEST(Train, weights_alone_are_no_state_to_resume_from) {
  const CommandRun run;
  ASSERT_EQ(run.train("a", {"train.steps=2"}).exit_code, 0);
  const std::string checkpoint = run.path("a/checkpoints/step-0000000002.h5"), weights = run.path("weights.h5");
  ASSERT_EQ(CommandRun::rowan({"convert", "--weights-only", checkpoint, weights}).exit_code, 0);
  std::filesystem::rename(weights, checkpoint);
  const CommandResult r = run.resume("a", {"train.steps=4"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.err, ::testing::HasSubstr("step-0000000002.h5' holds weights only"));
  EXPECT_LT(r.err.size(), 500u);  // not every array that is missing
  EXPECT_EQ(CommandRun::rowan({"sample", checkpoint, "--prompt", "the ", "--tokens", "2"}).exit_code, 0);
}

}  // namespace
}  // namespace rowan::test

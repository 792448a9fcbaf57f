// A run that ends before its time: asked to by a signal at a bad moment, by data that can't be read any more, or because its
// directory has become another's. What it had done is saved, or nothing is touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/support/small_run.h"
#include "train/signals.h"
#include "train/token_file_writer.h"
#include "train/trainer.h"

namespace rowan {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class StoppedRun : public testing::Test {
 protected:
  StoppedRun() : nowhere_(std::fopen("/dev/null", "w")) {}
  ~StoppedRun() override { std::fclose(nowhere_); }

  std::string state_of(const std::string& path) {
    const Checkpoint c = Checkpoint::open(path);
    return join_text(c.state_digest(), " best ", c.number("/train/best_loss"), " at ", c.integer("/train/best_step"));
  }
  // Calls at_step(step) when a step has been logged, before anything else is done after it.
  TrainOutcome train(
      TrainSession& session, RunDir& run, const std::function<void(int64_t)>& at_step = [](int64_t) {}) {
    return Trainer(session, run, {.out = nowhere_, .more_to_log = [&](int64_t step) { return at_step(step), std::string(); }})
        .run();
  }
  std::vector<std::string> states(const std::string& directory) {
    std::vector<std::string> out;
    for (const int64_t step : checkpoint_steps(directory))
      out.push_back(state_of(directory + "/checkpoints/" + checkpoint_file_name(step)));
    out.push_back(state_of(directory + "/best.h5"));
    return out;
  }

  test::SmallRun files_;
  std::FILE* nowhere_;
};

TEST_F(StoppedRun, an_evaluation_is_given_up_for_a_signal_and_made_again_by_a_resume) {
  const auto config = [this] {
    return files_.config({"train.eval_every=4", "checkpoint.every=4", "train.steps=8", "checkpoint.keep_last=9"});
  };
  {
    TrainSession session(config());
    RunDir run = RunDir::create(files_.path("whole"), false);
    train(session, run);
  }
  for (const int64_t stop : {4, 8}) {
    const std::string directory = files_.path("stopped-" + std::to_string(stop));
    {
      TrainSession session(config());
      RunDir run = RunDir::create(directory, false);
      const TrainOutcome outcome = train(session, run, [&](int64_t step) {
        if (step == stop) raise(SIGTERM);
      });
      EXPECT_EQ(outcome.signal, SIGTERM);
      EXPECT_EQ(outcome.step, stop);
    }
    std::ifstream log(directory + "/metrics.jsonl");
    const std::string events((std::istreambuf_iterator<char>(log)), {});
    EXPECT_THAT(events, testing::Not(HasSubstr("\"eval\",\"step\":" + std::to_string(stop) + ","))) << "it was not cut short";
    {
      TrainSession session(config());
      RunDir run = RunDir::open(directory);
      Checkpoint checkpoint = find_checkpoint(directory).checkpoint;
      session.load(checkpoint);
      EXPECT_EQ(session.steps_done(), stop);
      train(session, run);
    }
    EXPECT_EQ(states(directory), states(files_.path("whole"))) << stop;
  }
}

TEST_F(StoppedRun, when_data_can_not_be_read_any_more_the_steps_before_are_saved) {
  const std::string tokens = files_.path("text.tokens");
  {
    const auto tokenizer = Tokenizer::make("char", test::small_text(), {"text"});
    std::vector<int32_t> ids;
    tokenizer->encode(test::small_text(), {"text"}, ids);
    TokenFileWriter writer(tokens, *tokenizer, IfExists::kRefuse);
    writer.append(ids, std::ssize(test::small_text()));
    writer.publish();
  }
  TrainSession session(files_.config({"data.train=" + tokens, "data.tokenizer=char", "train.grad_accum=2"}));
  RunDir run = RunDir::create(files_.path("run"), false);
  try {
    train(session, run, [&](int64_t step) {
      if (step == 3) fs::resize_file(tokens, 200);
    });
    ADD_FAILURE() << "the file was not read again";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
  }
  EXPECT_THAT(checkpoint_steps(run.path()), ElementsAre(3));
  EXPECT_EQ(find_checkpoint(run.path()).checkpoint.integer("/loader/position"), 3 * 2 * 3);
}

TEST_F(StoppedRun, a_run_whose_directory_became_anothers_ends_and_touches_nothing) {
  TrainSession session(files_.config({"checkpoint.every=2"}));
  RunDir run = RunDir::create(files_.path("run"), false);
  const auto take_away = [&](int64_t step) {
    if (step != 3) return;
    fs::rename(files_.path("run"), files_.path("moved"));
    fs::create_directories(files_.path("run/checkpoints"));
    std::ofstream(files_.path("run/run.lock")) << "pid 1\nhost elsewhere\nboot b\nstart 1\n";
  };
  try {
    train(session, run, take_away);
    ADD_FAILURE() << "it went on";
  } catch (const LockLost& e) {
    EXPECT_THAT(e.what(), HasSubstr("is no longer this run's"));
    EXPECT_THAT(e.what(), HasSubstr("process 1 on host elsewhere"));
    EXPECT_EQ(e.kind(), ErrorKind::kData);
  }
  EXPECT_THAT(checkpoint_steps(files_.path("run")), IsEmpty());
  EXPECT_THAT(checkpoint_steps(files_.path("moved")), ElementsAre(2));
}

// The log is the other run's as well: this one neither adds to it nor cuts it back to what it remembers.
TEST_F(StoppedRun, a_run_whose_lock_became_anothers_leaves_the_log_alone) {
  TrainSession session(files_.config());
  RunDir run = RunDir::create(files_.path("run"), false);
  std::string log;
  const auto take_away = [&](int64_t step) {
    if (step != 3) return;
    fs::remove(files_.path("run/run.lock"));
    std::ofstream(files_.path("run/run.lock")) << "pid 1\nhost elsewhere\nboot b\nstart 1\n";
    std::ofstream(run.metrics_path(), std::ios::app) << "{\"event\":\"train\",\"step\":4}\n";
    log = read_text(run.metrics_path(), 1 << 20);
  };
  EXPECT_THROW(train(session, run, take_away), LockLost);
  EXPECT_EQ(read_text(run.metrics_path(), 1 << 20), log);
}

// Killed, or out of space, between the evaluation and the checkpoint that holds its outcome: it is made once more.
TEST_F(StoppedRun, an_evaluation_that_was_made_again_counts_when_its_checkpoint_stands) {
  const auto config = [this] { return files_.config({"train.eval_every=4", "checkpoint.every=4", "train.steps=8"}); };
  {
    TrainSession session(config());
    RunDir run = RunDir::create(files_.path("run"), false);
    train(session, run, [](int64_t step) {
      if (step == 4) raise(SIGTERM);
    });
  }
  const std::string checkpoint = files_.path("run/checkpoints/step-0000000004.h5");
  const auto resume = [&](const std::function<void(int64_t)>& at_step) {
    TrainSession session(config());
    RunDir run = RunDir::open(files_.path("run"));
    Checkpoint found = find_checkpoint(run.path()).checkpoint;
    session.load(found);
    return train(session, run, at_step);
  };
  const auto limit_files_to = [](rlim_t bytes) {
    struct rlimit limit {};
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  {
    const IgnoredSignals ignored({SIGXFSZ});
    limit_files_to(20000);  // enough for the log
    EXPECT_THROW(resume([](int64_t) { raise(SIGTERM); }), Error) << "the last save";
    limit_files_to(RLIM_INFINITY);
  }
  EXPECT_EQ(Checkpoint::open(checkpoint).integer("/train/best_step"), 0);
  EXPECT_THAT(read_text(files_.path("run/metrics.jsonl"), 1 << 20), testing::Not(HasSubstr("\"eval\"")));
  resume([](int64_t) { raise(SIGTERM); });
  EXPECT_EQ(Checkpoint::open(checkpoint).integer("/train/best_step"), 4);
  EXPECT_THAT(read_text(files_.path("run/metrics.jsonl"), 1 << 20), HasSubstr("\"eval\",\"step\":4,"));
}

TEST_F(StoppedRun, a_signal_during_the_last_evaluation_is_said) {
  TrainSession session(files_.config({"train.steps=3"}));
  RunDir run = RunDir::create(files_.path("run"), false);
  const TrainOutcome outcome = train(session, run, [](int64_t step) {
    if (step == 3) raise(SIGTERM);
  });
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_THAT(read_text(run.metrics_path(), 1 << 20), HasSubstr("\"reason\":\"signal\""));
}

TEST(IgnoredSignals, neither_end_the_process_nor_stay_ignored) {
  EXPECT_EXIT(
      {
        {
          const IgnoredSignals ignored({SIGUSR1, SIGPIPE});
          raise(SIGUSR1);
          raise(SIGPIPE);
        }
        raise(SIGUSR1);
      },
      testing::KilledBySignal(SIGUSR1), "");
}

}  // namespace
}  // namespace rowan

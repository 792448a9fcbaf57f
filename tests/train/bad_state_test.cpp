// A number that is not finite and that the loss does not show: it never gets into a checkpoint, nor into best.h5.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "tests/support/small_run.h"
#include "train/trainer.h"

namespace rowan {
namespace {

using testing::HasSubstr;

constexpr Real kNaN = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

// Row 255 of the byte table is never read from this text, and the head is not tied to it: no loss depends on it.
const std::vector<std::string> kSets = {"data.tokenizer=byte",          "train.steps=4",
                                        "train.eval_every=2",           "checkpoint.every=2",
                                        "optim.group.0.params=embed.*", "optim.group.0.rule=sparse_adam"};

void poison_weight(TrainSession& session, Real value) {
  for_each_parameter(session.model(), [&](const std::string& name, Parameter& p) {
    if (name == "embed.tokens.weight") p.value().data()[p.value().size() - 1] = value;
  });
}

class PoisonState final : public StateVisitor {
 public:
  bool loading() const override { return false; }
  void operator()(const std::string& name, Tensor& value) override {
    if (name == "embed.tokens.weight/exp_avg_sq") value.data()[value.size() - 1] = kInfinity;
  }
  void operator()(const std::string&, int64_t&) override {}
  void operator()(const std::string&, double&) override {}
  void operator()(const std::string&, std::vector<int32_t>&) override {}
  void operator()(const std::string&, std::vector<int64_t>&) override {}
  void operator()(const std::string&, std::vector<double>&) override {}
  void operator()(const std::string&, std::vector<uint8_t>&) override {}
};

struct Outcome {
  std::string error;
  ErrorKind kind = ErrorKind::kUsage;
  std::vector<int64_t> checkpoints;
  bool best = false;
};

Outcome train(const test::SmallRun& files, TrainSession& session) {
  std::filesystem::remove_all(files.path("run"));
  RunDir run = RunDir::create(files.path("run"), false);
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  Outcome outcome;
  try {
    Trainer(session, run, {.out = nowhere}).run();
  } catch (const Error& e) {
    outcome.error = e.what();
    outcome.kind = e.kind();
  }
  std::fclose(nowhere);
  outcome.checkpoints = checkpoint_steps(run.path());
  outcome.best = file_exists(run.best_path());
  return outcome;
}

class BadState : public testing::TestWithParam<const char*> {
 protected:
  Config config() const {
    std::vector<std::string> sets = kSets;
    sets.push_back(std::string("checkpoint.background=") + GetParam());
    return files_.config(sets);
  }
  test::SmallRun files_;
};

TEST_P(BadState, without_it_the_run_saves_and_has_a_best) {
  TrainSession session(config());
  const Outcome outcome = train(files_, session);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.checkpoints, testing::ElementsAre(2, 4));
  EXPECT_TRUE(outcome.best);
}

TEST_P(BadState, a_weight_that_no_loss_depends_on_is_never_saved) {
  for (const Real bad : {kNaN, kInfinity, -kInfinity}) {
    TrainSession session(config());
    poison_weight(session, bad);
    const Outcome outcome = train(files_, session);
    EXPECT_THAT(outcome.error, HasSubstr("embed.tokens.weight is not finite after step 4: such a state is not saved"));
    EXPECT_EQ(outcome.kind, ErrorKind::kNonFinite);
    EXPECT_THAT(outcome.checkpoints, testing::IsEmpty());
    EXPECT_FALSE(outcome.best);
  }
}

TEST_P(BadState, optimizer_state_is_never_saved_either) {
  TrainSession session(config());
  PoisonState poison;
  session.optimizers().visit_state(poison);
  const Outcome outcome = train(files_, session);
  EXPECT_THAT(outcome.error, HasSubstr("embed.tokens.weight/exp_avg_sq is not finite"));
  EXPECT_EQ(outcome.kind, ErrorKind::kNonFinite);
  EXPECT_THAT(outcome.checkpoints, testing::IsEmpty());
  EXPECT_FALSE(outcome.best);
}

INSTANTIATE_TEST_SUITE_P(Background, BadState, testing::Values("false", "true"));

}  // namespace
}  // namespace rowan

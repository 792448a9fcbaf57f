// Train 2n steps, or train n, save, load into a new session and train n more: the same losses and the same state, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/parallel.h"
#include "tests/support/session_runs.h"
#include "train/evaluate.h"
#include "train/generate.h"

namespace rowan {
namespace {

using test::interrupted;
using test::Trace;
using test::train_until;
using test::uninterrupted;

struct Case {
  std::string positions, rule;
  int accumulation;
  double dropout;
};

class Resume : public ::testing::TestWithParam<Case> {
 protected:
  Config config(std::vector<std::string> more = {}) {
    const Case& c = GetParam();
    std::vector<std::string> sets = {"model.positions=" + c.positions, "train.grad_accum=" + std::to_string(c.accumulation),
                                     "model.dropout=" + std::to_string(c.dropout)};
    if (c.rule != "adamw") {
      for (const char* set : {"optim.group.0.params=embed.*", "optim.group.0.lr=1e-2"}) sets.push_back(set);
      sets.push_back(c.rule == "sparse_adam" ? "optim.group.0.rule=sparse_adam" : "optim.group.0.rule=adamw");
    }
    if (c.rule == "closed" || c.rule == "replay") sets.push_back("optim.group.0.untouched=exact");
    if (c.rule == "closed") sets.push_back("optim.group.0.catch_up=closed");
    if (c.rule == "deferred")
      for (const char* set : {"optim.group.0.untouched=frozen", "optim.group.0.decay=deferred"}) sets.push_back(set);
    if (c.rule == "closed" || c.rule == "replay" || c.rule == "deferred")
      sets.push_back("data.batch_size=1");  // few ids a step: rows lag behind
    sets.insert(sets.end(), more.begin(), more.end());
    return run_.config(sets);
  }
  test::SmallRun run_;
};

TEST_P(Resume, continues_to_the_same_bits_from_any_stopping_point) {
  constexpr int64_t kSteps = 8;
  const Trace whole = uninterrupted(config(), kSteps);
  for (int64_t stop : {0, 1, 3, 4, 7, 8}) {
    const Trace parts = interrupted(
        run_, [&] { return config(); }, stop, kSteps);
    EXPECT_EQ(whole.losses, parts.losses) << "stopped at " << stop;
    EXPECT_EQ(whole.digest, parts.digest) << "stopped at " << stop;
  }
}

TEST(ResumeDenormals, are_recorded_as_the_training_thread_treats_them) {
  const test::SmallRun run;
  TrainSession session(run.config());
  EXPECT_EQ(test::saved(run, session, "kept").text("/train/denormals"), "kept");  // outside of Threads
  const Threads threads(2);
  Checkpoint checkpoint = test::saved(run, session, "flushed");
  EXPECT_EQ(checkpoint.text("/train/denormals"), "flushed to zero");
  TrainSession other(run.config());
  other.load(checkpoint);
  EXPECT_EQ(other.saved_denormals(), "flushed to zero");
}

TEST_P(Resume, evaluating_and_sampling_in_between_changes_nothing) {
  const Trace plain = uninterrupted(config(), 6);
  Trace disturbed;
  TrainSession session(config());
  for (int64_t step = 1; step <= 6; ++step) {
    train_until(session, step, disturbed);
    evaluate(session.model(), session.corpus().val, *session.corpus().tokenizer, 2);
    generate(session.model(), session.corpus().tokenizer, "the ", {.tokens = 20}, [](std::string_view) {});
  }
  disturbed.digest = make_image(session).state_digest();
  EXPECT_EQ(plain, disturbed);
}

TEST_P(Resume, the_number_of_threads_changes_nothing) {
  const Trace one = uninterrupted(config(), 5);
  for (int count : {1, 2, 4}) {
    const Threads threads(count);
    EXPECT_EQ(one, uninterrupted(config(), 5)) << count << " threads";
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* positions : {"learned", "rope"})
    for (const char* rule : {"adamw", "sparse_adam"})
      for (int accumulation : {1, 3})
        for (double dropout : {0.0, 0.1}) cases.push_back({positions, rule, accumulation, dropout});
  for (const char* rule : {"replay", "closed", "deferred"})  // rows that are behind when a run stops, or is looked at
    for (int accumulation : {1, 3}) cases.push_back({"rope", rule, accumulation, 0.0});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Resume, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  const Case& c = test.param;
  return c.positions + "_" + c.rule + "_accumulate" + std::to_string(c.accumulation) + (c.dropout > 0 ? "_dropout" : "");
});

TEST(Session, accumulating_micro_batches_gives_the_gradient_of_the_large_batch) {
  const test::SmallRun run;
  const auto first_loss = [&](const std::vector<std::string>& sets) {
    TrainSession session(run.config(sets));
    const StepResult r = session.step();
    return std::pair{r.loss, r.grad_norm};
  };
  const auto large = first_loss({"data.batch_size=6", "train.grad_accum=1"});
  const auto cut = first_loss({"data.batch_size=2", "train.grad_accum=3"});
  EXPECT_NEAR(large.first, cut.first, 1e-6);
  EXPECT_NEAR(large.second, cut.second, 1e-5 * large.second);
}

TEST(Session, a_step_lowers_the_loss_of_a_small_text_over_time) {
  const test::SmallRun run;
  TrainSession session(run.config({"train.steps=60", "train.schedule.kind=constant"}));
  Trace trace;
  train_until(session, 60, trace);
  EXPECT_LT(trace.losses.back(), 0.75 * trace.losses.front());
}

TEST(Session, a_loss_that_is_not_finite_changes_no_parameter_and_no_counter) {
  const test::SmallRun run;
  TrainSession session(run.config());
  session.step();
  session.model().token_table().value().fill(std::numeric_limits<Real>::infinity());
  std::vector<Tensor> before;
  for_each_parameter(session.model(), [&](const std::string&, Parameter& p) { before.push_back(p.value().clone()); });
  const StepResult r = session.step();
  EXPECT_FALSE(r.finite);
  EXPECT_NE(r.what.find("nan"), std::string::npos) << r.what;
  EXPECT_EQ(session.steps_done(), 1);
  size_t i = 0;
  for_each_parameter(session.model(), [&](const std::string& name, Parameter& p) {
    EXPECT_EQ(0, std::memcmp(before[i].data(), p.value().data(), static_cast<size_t>(p.value().size()) * sizeof(Real))) << name;
    EXPECT_FALSE(p.has_grad()) << name;
    ++i;
  });
}

}  // namespace
}  // namespace rowan

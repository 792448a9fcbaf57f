// train.loss = "sampled" in whole runs: what is drawn from, exact resuming, rows that lag behind, and where the loss ends.
#include "train/sampled_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/parallel.h"
#include "tests/support/session_runs.h"
#include "train/evaluate.h"

namespace rowan {
namespace {

using test::refusal;
using test::Trace;
using test::uninterrupted;

class SampledLoss : public ::testing::TestWithParam<std::string> {
 protected:
  Config config(std::vector<std::string> more = {}) const {
    std::vector<std::string> sets = {"train.loss=sampled", "train.sampled.negatives=8", "train.sampled.sampler=" + GetParam(),
                                     "train.grad_accum=2"};
    sets.insert(sets.end(), more.begin(), more.end());
    return run_.config(sets);
  }
  test::SmallRun run_;
};

TEST_P(SampledLoss, continues_to_the_same_bits_from_any_stopping_point) {
  const Trace whole = uninterrupted(config(), 6);
  for (int64_t stop = 0; stop <= 6; ++stop)
    EXPECT_EQ(whole, test::interrupted(
                         run_, [&] { return config(); }, stop, 6))
        << "stopped at " << stop;
}

TEST_P(SampledLoss, the_number_of_threads_changes_nothing) {
  const Trace one = uninterrupted(config(), 4);
  for (int count : {1, 2, 4}) {
    const Threads threads(count);
    EXPECT_EQ(one, uninterrupted(config(), 4)) << count << " threads";
  }
}

// Rows of the head that lag behind are caught up before the forward pass reads them, the drawn ones as well as the targets': the
// losses are those of a run in which no row ever lags.
TEST_P(SampledLoss, an_exact_head_is_the_dense_one_bitwise) {
  const std::vector<std::string> group = {"optim.group.0.params=head.weight", "optim.group.0.rule=adamw", "optim.group.0.lr=1e-2",
                                          "optim.group.0.weight_decay=0.1"};
  std::vector<std::string> exact = group, dense = group;
  exact.emplace_back("optim.group.0.untouched=exact");
  dense.emplace_back("optim.group.0.untouched=dense");
  TrainSession a(config(exact)), b(config(dense));
  Trace losses_a, losses_b;
  test::train_until(a, 12, losses_a);
  test::train_until(b, 12, losses_b);
  EXPECT_EQ(losses_a.losses, losses_b.losses);
  EXPECT_EQ(test::arrays_of(test::saved(run_, a, "a"), "/model"), test::arrays_of(test::saved(run_, b, "b"), "/model"));
}

TEST_P(SampledLoss, trains_to_nearly_the_loss_of_the_full_softmax) {
  const auto validation_loss = [&](const Config& c) {
    TrainSession session(c);
    Trace trace;
    test::train_until(session, 300, trace);
    return evaluate(session.model(), session.corpus().val, *session.corpus().tokenizer, 4).loss;
  };
  const double full = validation_loss(run_.config({"train.schedule.decay_steps=300"}));
  const double sampled =
      validation_loss(config({"train.schedule.decay_steps=300", "train.grad_accum=1", "train.sampled.negatives=16"}));
  TrainSession start(config());
  const double untrained = evaluate(start.model(), start.corpus().val, *start.corpus().tokenizer, 4).loss;
  EXPECT_LT(full, 0.7 * untrained);
  EXPECT_LT(sampled, full + 0.15 * (untrained - full));
}

INSTANTIATE_TEST_SUITE_P(Samplers, SampledLoss, ::testing::Values("log_uniform", "unigram", "uniform"),
                         [](const auto& sampler) { return sampler.param; });

TEST(SampledHead, is_row_sparse_and_reports_the_rows_it_touched) {
  const test::SmallRun run;
  TrainSession session(run.config({"train.loss=sampled", "train.sampled.negatives=3", "optim.group.0.params=head.weight",
                                   "optim.group.0.rule=sparse_adam", "data.batch_size=1"}));
  const int64_t vocab = session.config().model.vocab_size;
  const Tensor before = session.model().head().value().clone();
  const StepResult r = session.step();
  const int64_t touched = r.updates.at("head.weight").touched;
  EXPECT_GE(touched, 2);
  EXPECT_LE(touched, 12 + 3);
  int64_t changed = 0;
  for (int64_t row = 0; row < vocab; ++row)
    changed += std::memcmp(before.row(row).data(), session.model().head().value().row(row).data(), 16 * sizeof(Real)) != 0;
  EXPECT_EQ(changed, touched);
}

TEST(SampledHead, draws_are_others_in_every_micro_batch_and_the_same_in_every_run) {
  const test::SmallRun run;
  const Config config = run.config({"train.loss=sampled", "train.sampled.negatives=8"});
  const NegativeSampler sampler = NegativeSampler::uniform(1000);
  const auto draw = [&](uint64_t number) { return sampler.draw(8, negatives_key(config, number)).ids; };
  EXPECT_EQ(draw(3), draw(3));
  EXPECT_NE(draw(3), draw(4));
  EXPECT_NE(draw(3), sampler.draw(8, negatives_key(run.config({"train.seed=8"}), 3)).ids);
}

TEST(CountTargets, counts_every_target_of_the_split_once) {
  const test::SmallRun run;
  const TrainSession session(run.config({"data.val_fraction=0"}));
  const std::string text = test::small_text();
  const Corpus& corpus = session.corpus();
  const int64_t vocab = corpus.tokenizer->vocab_size();
  std::vector<int32_t> ids;
  corpus.tokenizer->encode(text, {.name = "text", .offset = 0}, ids);
  std::vector<int64_t> expected(static_cast<size_t>(vocab), 0);
  for (size_t i = 1; i < ids.size(); ++i) ++expected[static_cast<size_t>(ids[i])];  // the first token is no target
  EXPECT_EQ(count_targets(corpus.train, vocab), expected);
  int64_t first = 0;
  for (const int64_t count : count_targets(corpus.train, vocab, 100)) first += count;
  EXPECT_EQ(first, 100);
}

TEST(SampledConfig, is_refused_where_it_makes_no_sense_and_says_why) {
  using ::testing::AllOf;
  using ::testing::HasSubstr;
  EXPECT_THAT(refusal({"train.loss=sampled", "model.tied=true"}), AllOf(HasSubstr("model.tied"), HasSubstr("model.tied = false")));
  EXPECT_THAT(refusal({"train.loss=sampled", "train.sampled.negatives=50", "model.vocab_size=50"}),
              AllOf(HasSubstr("[config]"), HasSubstr("negatives = 50")));
  // The vocabulary of this text is known only once it is read.
  EXPECT_THAT(refusal({"train.loss=sampled", "train.sampled.negatives=1000"}), HasSubstr("not below the vocabulary of "));
  EXPECT_THAT(refusal({"train.loss=some"}), HasSubstr("\"full\", \"sampled\""));
  EXPECT_THAT(refusal({"train.loss=sampled", "train.sampled.sampler=zipf"}), HasSubstr("\"log_uniform\""));
  EXPECT_EQ(refusal({"train.loss=sampled", "train.sampled.negatives=5"}), "");
}

}  // namespace
}  // namespace rowan

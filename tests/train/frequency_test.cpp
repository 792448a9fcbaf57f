// Counts, losses and rows by frequency, against plain loops over the same data.
#include "train/frequency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/small_sweep.h"
#include "train/evaluate.h"
#include "train/session.h"
#include "train/zipf_data.h"

namespace rowan {
namespace {

Config small_config(std::vector<std::string> overrides = {}) {
  overrides.push_back("data.zipf.vocab_size=40");
  return parse_config(test::kSmallSweepBase, "base.toml", overrides);
}

TEST(Bucket, is_the_binary_logarithm_with_never_apart) {
  const std::vector<std::pair<int64_t, int>> table = {{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {7, 3}, {8, 4}, {1 << 20, 21}};
  for (const auto& [count, bucket] : table) EXPECT_EQ(bucket_of(count), bucket) << count;
  EXPECT_EQ(bucket_text(0), "never seen");
  EXPECT_EQ(bucket_text(1), "1");
  EXPECT_EQ(bucket_text(3), "4-7");
}

TEST(CountTraining, counts_what_the_steps_read) {
  TrainSession session(small_config({"train.grad_accum=2"}));
  session.loader().next();  // the count starts at the beginning all the same
  const int64_t position = session.loader().position();
  const TokenCounts counts = count_training(session.loader(), 40, 5, 2);
  EXPECT_EQ(session.loader().position(), position);
  session.loader().seek(0);
  std::vector<int64_t> as_input(40), as_target(40), touches(40), last(40);
  for (int64_t step = 1; step <= 5; ++step) {
    std::set<int32_t> read;
    for (int i = 0; i < 2; ++i) {
      const Batch batch = session.loader().next();
      for (int32_t id : batch.inputs.values()) ++as_input[static_cast<size_t>(id)], read.insert(id);
      for (int32_t id : batch.targets.values()) ++as_target[static_cast<size_t>(id)];
    }
    for (int32_t id : read) ++touches[static_cast<size_t>(id)], last[static_cast<size_t>(id)] = step;
  }
  EXPECT_EQ(counts.as_input, as_input);
  EXPECT_EQ(counts.as_target, as_target);
  EXPECT_EQ(counts.touches, touches);
  EXPECT_EQ(counts.last_touch, last);
  EXPECT_NE(counts.data_digest, count_training(session.loader(), 40, 6, 2).data_digest);
  EXPECT_EQ(counts.data_digest, count_training(session.loader(), 40, 10, 1).data_digest) << "the same data, cut otherwise";
}

TEST(EvaluateByFrequency, parts_add_up_to_the_whole_and_divergence_is_the_plain_sum) {
  TrainSession session(small_config());
  for (int i = 0; i < 10; ++i) session.step();
  const TokenCounts counts = count_training(session.loader(), 40, 10, 1);
  const auto& val = session.corpus().val;
  const FrequencyLoss got = evaluate_by_frequency(session.model(), val, counts, 4);
  const EvalResult whole = evaluate(session.model(), val, *session.corpus().tokenizer, 4);
  EXPECT_NEAR(got.loss, whole.loss, 1e-12);
  EXPECT_EQ(got.tokens, whole.tokens);
  std::map<int, double> loss, divergence, tokens;
  const ZipfData& data = dynamic_cast<const ZipfExamples&>(*val).data();
  EvalBatches batches(val, 16);
  Batch batch;
  ASSERT_TRUE(batches.next(batch));
  const Tensor logits = session.model().logits(batch.inputs);
  for (int64_t i = 0; i < batch.inputs.size(); ++i) {
    double sum = 0;
    for (Real z : logits.row(i)) sum += std::exp(static_cast<double>(z));
    const auto log_p = [&](int32_t id) { return static_cast<double>(logits.row(i)[static_cast<size_t>(id)]) - std::log(sum); };
    const int bucket = bucket_of(counts.as_input[static_cast<size_t>(batch.inputs[i])]);
    ++tokens[bucket];
    loss[bucket] -= log_p(batch.targets[i]);
    for (int32_t a = 0; a < 4; ++a) {
      const double truth = data.target_probability(batch.inputs[i], a);
      divergence[bucket] += truth * (std::log(truth) - log_p(a));
    }
  }
  ASSERT_EQ(got.by_input.size(), tokens.size());
  EXPECT_TRUE(got.by_input.contains(0)) << "some id of validation was never seen";
  for (const auto& [bucket, b] : got.by_input) {
    EXPECT_EQ(static_cast<double>(b.tokens), tokens[bucket]);
    EXPECT_NEAR(b.loss, loss[bucket] / tokens[bucket], 2e-5);
    EXPECT_NEAR(b.divergence, divergence[bucket] / tokens[bucket], 2e-5);
  }
  EXPECT_TRUE(got.truth_known);
  EXPECT_DOUBLE_EQ(got.lowest_loss, data.entropy());
}

TEST(RowsByFrequency, are_means_over_the_rows_of_a_bucket) {
  // Ids 0 and 1 read twice and three times (one bucket), 2 never, 3 once.
  const TokenCounts counts{{2, 3, 0, 1}, {0, 0, 0, 0}, {2, 3, 0, 1}, {5, 4, 0, 4}, {8, 10, 0, 4}, 10, ""};
  const Tensor table = Tensor::from({4, 2}, std::vector<Real>{3, 4, 0, 1, 0, 2, 6, 8});
  const auto rows = rows_by_frequency(table, counts);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.at(2).rows, 2);
  EXPECT_DOUBLE_EQ(rows.at(2).norm, 3);
  EXPECT_DOUBLE_EQ(rows.at(2).age, 1);
  EXPECT_DOUBLE_EQ(rows.at(2).touch_gap, 3) << "3 steps from 5 to 8, and 6 for two from 4 to 10";
  EXPECT_DOUBLE_EQ(rows.at(1).touch_gap, 0) << "read once";
  EXPECT_DOUBLE_EQ(rows.at(0).age, 10);
  EXPECT_DOUBLE_EQ(rows.at(0).touch_gap, 0);
  EXPECT_DOUBLE_EQ(rows.at(1).norm, 10);
}

}  // namespace
}  // namespace rowan

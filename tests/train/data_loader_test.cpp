#include "train/data_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "train/builtin_data.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;

// Tokens 0, 1, 2, ...: an id says where it stands.
std::shared_ptr<const Tokens> counting(int64_t n, int64_t vocab = 100000) {
  auto tokens = std::make_shared<PackedTokens>(vocab, 7);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  tokens->append(ids);
  return tokens;
}

std::shared_ptr<const Examples> text(int64_t n, int64_t seq_len) {
  return std::make_shared<TextExamples>(counting(n), seq_len, "the text", false);
}

void expect_windows(const Batch& batch, int64_t t) {
  for (size_t b = 0; b < batch.starts.size(); ++b)
    for (int64_t i = 0; i < t; ++i) {
      EXPECT_EQ(batch.inputs[static_cast<int64_t>(b) * t + i], batch.starts[b] + i);
      EXPECT_EQ(batch.targets[static_cast<int64_t>(b) * t + i], batch.starts[b] + i + 1);
    }
}

TEST(DataLoader, shuffled_covers_every_block_once_an_epoch_without_overlap) {
  for (const auto& [n, t] :
       std::vector<std::pair<int64_t, int64_t>>{{101, 10}, {107, 10}, {110, 10}, {11, 10}, {500, 1}, {64, 7}}) {
    DataLoader loader(text(n, t), 1, DataOrder::kShuffled, 42);
    const int64_t k = loader.sequences_per_epoch();
    EXPECT_EQ(k, (n - 1) / t);
    for (int epoch = 0; epoch < 5; ++epoch) {
      EXPECT_EQ(loader.epoch(), epoch);
      std::set<int64_t> starts;
      std::vector<int> seen(static_cast<size_t>(n), 0);
      for (int64_t i = 0; i < k; ++i) {
        const Batch batch = loader.next();
        expect_windows(batch, t);
        starts.insert(batch.starts[0]);
        for (int32_t target : batch.targets.values()) ++seen[static_cast<size_t>(target)];
      }
      EXPECT_EQ(static_cast<int64_t>(starts.size()), k);
      EXPECT_LE(*std::max_element(seen.begin(), seen.end()), 1) << "a target twice in an epoch";
      EXPECT_EQ(std::accumulate(seen.begin(), seen.end(), 0), k * t);
      EXPECT_LT(n - 1 - k * t, t) << "less than one example may be left out";
    }
  }
}

TEST(DataLoader, shuffled_leaves_out_other_tokens_in_other_epochs) {
  DataLoader loader(text(110, 10), 10, DataOrder::kShuffled, 1);  // 10 blocks and 9 tokens over
  std::set<int64_t> phases;
  for (int epoch = 0; epoch < 200; ++epoch) phases.insert(loader.next().starts[0] % 10);
  EXPECT_EQ(phases.size(), 10u);
}

TEST(DataLoader, orders_differ_by_epoch_and_by_seed) {
  DataLoader a(text(1001, 10), 100, DataOrder::kShuffled, 1), b(text(1001, 10), 100, DataOrder::kShuffled, 2);
  const auto first = a.next().starts, second = a.next().starts;
  EXPECT_NE(first, second);
  EXPECT_NE(first, b.next().starts);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), second.begin()));
}

TEST(DataLoader, random_draws_every_start_alike) {
  const int64_t n = 60, t = 10;  // 50 starts
  DataLoader loader(text(n, t), 1000, DataOrder::kRandom, 9);
  std::vector<int> counts(50, 0);
  for (int i = 0; i < 50; ++i) {
    const Batch batch = loader.next();
    if (i == 0) expect_windows(batch, t);
    for (int64_t s : batch.starts) ++counts.at(static_cast<size_t>(s));
  }
  double chi2 = 0;
  for (int c : counts) chi2 += (c - 1000.0) * (c - 1000.0) / 1000.0;
  EXPECT_LT(chi2, 85.4);  // 49 degrees of freedom, p = 0.001
  EXPECT_GT(chi2, 20);    // and not too even to be random
}

TEST(DataLoader, sequential_reads_the_text_in_order_again_and_again) {
  DataLoader loader(text(35, 10), 2, DataOrder::kSequential, 1);
  EXPECT_EQ(loader.next().starts, (std::vector<int64_t>{0, 10}));
  EXPECT_EQ(loader.next().starts, (std::vector<int64_t>{20, 0}));  // the batch goes on into the next epoch
  EXPECT_EQ(loader.epoch(), 1);
}

TEST(DataLoader, seeking_gives_what_replaying_gives) {
  for (DataOrder order : {DataOrder::kShuffled, DataOrder::kRandom, DataOrder::kSequential}) {
    DataLoader straight(text(137, 7), 5, order, 3);
    for (int64_t step = 0; step < 30; ++step) {
      DataLoader sought(text(137, 7), 5, order, 3);
      sought.seek(step * 5);
      const Batch expected = straight.next(), got = sought.next();
      EXPECT_EQ(expected.starts, got.starts);
      EXPECT_TRUE(std::equal(expected.inputs.values().begin(), expected.inputs.values().end(), got.inputs.values().begin()));
    }
  }
}

TEST(DataLoader, the_same_sequences_come_for_any_batch_size) {
  for (DataOrder order : {DataOrder::kShuffled, DataOrder::kRandom, DataOrder::kSequential}) {
    std::vector<std::vector<int64_t>> streams;
    for (int64_t b : {1, 3, 12, 60}) {
      DataLoader loader(text(137, 7), b, order, 3);
      std::vector<int64_t> all;
      for (int64_t i = 0; i < 60 / b; ++i) {
        const Batch batch = loader.next();
        all.insert(all.end(), batch.starts.begin(), batch.starts.end());
      }
      streams.push_back(all);
    }
    for (const auto& s : streams) EXPECT_EQ(s, streams[0]);
  }
}

// Keeps what a visitor saves by name and gives it back: stands for the checkpoint.
struct MapVisitor : StateVisitor {
  bool load = false;
  std::map<std::string, int64_t> ints;
  std::map<std::string, std::vector<uint8_t>> bytes;

  bool loading() const override { return load; }
  void operator()(const std::string& name, int64_t& v) override { load ? void(v = ints.at(name)) : void(ints[name] = v); }
  void operator()(const std::string& name, std::vector<uint8_t>& v) override {
    load ? void(v = bytes.at(name)) : void(bytes[name] = v);
  }
  void operator()(const std::string&, Tensor&) override { FAIL(); }
  void operator()(const std::string&, double&) override { FAIL(); }
  void operator()(const std::string&, std::vector<int32_t>&) override { FAIL(); }
  void operator()(const std::string&, std::vector<int64_t>&) override { FAIL(); }
  void operator()(const std::string&, std::vector<double>&) override { FAIL(); }
};

TEST(DataLoader, goes_on_from_saved_state) {
  DataLoader a(text(137, 7), 5, DataOrder::kShuffled, 3);
  for (int i = 0; i < 9; ++i) a.next();
  MapVisitor state;
  a.visit_state(state);
  EXPECT_EQ(state.ints.at("position"), 45);
  EXPECT_EQ(state.ints.at("epoch"), 2);
  state.load = true;
  DataLoader b(text(137, 7), 5, DataOrder::kShuffled, 3);
  b.visit_state(state);
  EXPECT_EQ(b.position(), 45);
  EXPECT_EQ(a.next().starts, b.next().starts);
}

TEST(DataLoader, refuses_the_state_of_another_stream_by_name) {
  DataLoader saved(text(137, 7), 5, DataOrder::kShuffled, 3);
  saved.next();
  MapVisitor state;
  saved.visit_state(state);
  state.load = true;
  const auto refusal = [&](DataLoader loader) {
    try {
      loader.visit_state(state);
    } catch (const Error& e) {
      EXPECT_EQ(loader.position(), 0);
      return std::string(e.what()) + e.hint();
    }
    return std::string();
  };
  EXPECT_THAT(refusal({text(138, 7), 5, DataOrder::kShuffled, 3}), HasSubstr("fingerprint"));
  EXPECT_THAT(refusal({text(137, 8), 5, DataOrder::kShuffled, 3}), HasSubstr("seq_len 7, now it is 8"));
  EXPECT_THAT(refusal({text(137, 7), 5, DataOrder::kRandom, 3}), HasSubstr("order shuffled, now it is random"));
  EXPECT_THAT(refusal({text(137, 7), 5, DataOrder::kShuffled, 4}), HasSubstr("seed 3, now it is 4"));
  EXPECT_EQ(refusal({text(137, 7), 9, DataOrder::kShuffled, 3}), "") << "another batch size draws the same sequences";
  state.ints["epoch"] = 5;
  EXPECT_THAT(refusal({text(137, 7), 5, DataOrder::kShuffled, 3}), HasSubstr("do not agree"));
}

TEST(DataLoader, knows_its_orders_by_name) {
  EXPECT_EQ(data_order("shuffled"), DataOrder::kShuffled);
  EXPECT_EQ(data_order("random"), DataOrder::kRandom);
  EXPECT_EQ(data_order("sequential"), DataOrder::kSequential);
  EXPECT_THROW(data_order("Shuffled"), Error);
  EXPECT_THROW(DataLoader(text(20, 5), 0, DataOrder::kRandom, 1), Error);
}

TEST(TextExamples, says_both_numbers_when_the_text_is_too_short) {
  for (int64_t n : {0, 1, 10}) {
    try {
      TextExamples(counting(n), 10, "'corpus.txt'", false);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      EXPECT_THAT(e.what(), HasSubstr("'corpus.txt' has " + std::to_string(n) + " tokens"));
      EXPECT_THAT(e.what(), HasSubstr("at least 11"));
    }
  }
  EXPECT_EQ(TextExamples(counting(11), 10, "t", false).starts(), 1);
}

TEST(EvalBatches, cover_every_target_once) {
  for (int64_t n : {2, 3, 10, 11, 12, 31, 100, 101}) {
    for (int64_t b : {1, 3, 8}) {
      const auto examples = std::make_shared<TextExamples>(counting(n), 10, "val", true);
      EvalBatches batches(examples, b);
      std::vector<int> seen(static_cast<size_t>(n), 0);
      Batch batch;
      int64_t count = 0;
      while (batches.next(batch)) {
        ++count;
        EXPECT_LE(batch.inputs.shape()[0], b);
        for (int64_t i = 0; i < batch.targets.size(); ++i) {
          if (batch.targets[i] == kIgnored) continue;
          ++seen[static_cast<size_t>(batch.targets[i])];
          EXPECT_EQ(batch.inputs[i], batch.targets[i] - 1);
        }
      }
      EXPECT_EQ(count, batches.batches());
      std::vector<int> expected(static_cast<size_t>(n), 1);
      expected[0] = 0;  // nothing comes before the first token
      EXPECT_EQ(seen, expected) << n << " tokens, " << b << " rows";
    }
  }
}

TEST(EvalBatches, stop_after_exactly_so_many_targets) {
  for (int64_t limit : {1, 9, 10, 11, 25, 98, 99, 100, 5000}) {
    EvalBatches batches(std::make_shared<TextExamples>(counting(100), 10, "val", true), 4, limit);
    int64_t counted = 0;
    Batch batch;
    while (batches.next(batch)) {
      for (int32_t target : batch.targets.values()) {
        if (target == kIgnored) continue;
        EXPECT_EQ(target, ++counted);
      }
      EXPECT_GT(counted, 0);
    }
    EXPECT_EQ(counted, std::min<int64_t>(limit, 99));
  }
}

DataConfig of_length(int64_t seq_len) {
  DataConfig config;
  config.seq_len = seq_len;
  return config;
}

TEST(SortExamples, enumerate_all_729_inputs_and_their_sorted_halves) {
  const SortExamples sort(3, 6);
  EXPECT_EQ(sort.starts(), 729);
  EXPECT_EQ(sort.seq_len(), 11);
  std::set<std::vector<int32_t>> inputs;
  std::vector<int32_t> x(11), y(11);
  for (int64_t e = 0; e < 729; ++e) {
    sort.read(e, x, y);
    std::vector<int32_t> letters(x.begin(), x.begin() + 6), sorted = letters;
    for (int32_t letter : letters) EXPECT_TRUE(letter >= 0 && letter < 3);
    inputs.insert(letters);
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::vector<int32_t>(y.begin(), y.begin() + 5), std::vector<int32_t>(5, kIgnored));
    EXPECT_EQ(std::vector<int32_t>(y.begin() + 5, y.end()), sorted);
    EXPECT_EQ(std::vector<int32_t>(x.begin() + 6, x.end()), std::vector<int32_t>(sorted.begin(), sorted.end() - 1));
  }
  EXPECT_EQ(inputs.size(), 729u);
}

TEST(SortExamples, are_shuffled_and_evaluated_like_any_data) {
  const BuiltinData data = make_builtin("builtin:sort", of_length(11));
  EXPECT_EQ(data.tokenizer->decode(std::vector<int32_t>{0, 1, 2}), "ABC");
  DataLoader loader(data.train, 729, DataOrder::kShuffled, 1);
  auto starts = loader.next().starts;
  EXPECT_FALSE(std::is_sorted(starts.begin(), starts.end()));
  std::sort(starts.begin(), starts.end());
  for (int64_t i = 0; i < 729; ++i) EXPECT_EQ(starts[static_cast<size_t>(i)], i);
  EvalBatches batches(data.train, 100);
  Batch batch;
  int64_t rows = 0, counted = 0;
  while (batches.next(batch)) {
    rows += batch.inputs.shape()[0];
    for (int32_t target : batch.targets.values()) counted += target != kIgnored;
  }
  EXPECT_EQ(rows, 729);
  EXPECT_EQ(counted, 729 * 6);
}

TEST(SortExamples, count_a_row_as_correct_only_when_every_letter_is) {
  const auto examples = make_builtin("builtin:sort", of_length(11)).train;
  EvalBatches batches(examples, 729);
  Batch batch;
  ASSERT_TRUE(batches.next(batch));
  Tensor logits = Tensor::zeros({729, 11, 3});
  EXPECT_EQ(rows_all_correct(batch, logits), 1) << "all ties: AAAAAA alone";
  for (int64_t i = 0; i < batch.targets.size(); ++i)
    if (batch.targets[i] != kIgnored) logits.row(i)[static_cast<size_t>(batch.targets[i])] = 1;
  EXPECT_EQ(rows_all_correct(batch, logits), 729);
  const int64_t last = 728 * 11 + 10;  // CCCCCC: its last letter becomes A
  logits.row(last)[0] = 2;
  EXPECT_EQ(rows_all_correct(batch, logits), 728);
  EXPECT_THROW(rows_all_correct(batch, Tensor::zeros({729, 3})), Error);
}

TEST(BuiltinData, names_what_there_is_and_the_length_it_needs) {
  EXPECT_TRUE(is_builtin("builtin:sort"));
  EXPECT_FALSE(is_builtin("data/builtin:sort"));
  try {
    make_builtin("builtin:sort", of_length(64));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("sequences of 11, but data.seq_len is 64"));
    EXPECT_THAT(e.hint(), HasSubstr("seq_len = 11"));
  }
  EXPECT_THROW(make_builtin("builtin:srot", of_length(11)), Error);
}

}  // namespace
}  // namespace rowan

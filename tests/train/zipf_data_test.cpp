// builtin:zipf, against the law that its header states.
#include "train/zipf_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <map>
#include <set>

#include "train/builtin_data.h"
#include "train/corpus.h"
#include "train/session.h"
#include "train/tokenizer_number.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;

TEST(ZipfData, places_every_rank_in_a_row_of_its_own_at_any_time) {
  for (int64_t v : {2, 3, 97, 1000}) {
    const ZipfData data({.vocab_size = v, .answers = 2, .drift = 700});
    for (int64_t sequence : {0, 1, 10, 12345}) {
      std::set<int64_t> ranks;
      double sum = 0;
      for (int32_t id = 0; id < v; ++id) {
        ranks.insert(data.rank(sequence, id));
        sum += data.probability(sequence, id);
      }
      EXPECT_EQ(std::ssize(ranks), v);
      EXPECT_EQ(*ranks.begin(), 1);
      EXPECT_EQ(*ranks.rbegin(), v);
      EXPECT_NEAR(sum, 1, 1e-12);
    }
  }
}

// Counts of ids over sequences [from, to) beside their expectation, as Pearson's statistic over the ids that are expected often.
double misfit(const ZipfData& data, int64_t from, int64_t to, int64_t& classes) {
  constexpr int64_t kLength = 64;
  std::map<int32_t, double> seen, expected;
  for (int64_t n = from; n < to; ++n) {
    for (int64_t t = 0; t < kLength; ++t) ++seen[data.id(ZipfSplit::kTrain, n, t)];
    for (int32_t id = 0; id < data.config().vocab_size; ++id) expected[id] += kLength * data.probability(n, id);
  }
  double statistic = 0;
  classes = 0;
  for (const auto& [id, e] : expected) {
    if (e < 5) continue;
    statistic += (seen[id] - e) * (seen[id] - e) / e;
    ++classes;
  }
  return statistic;
}

void expect_fit(const ZipfData& data, int64_t from, int64_t to) {
  int64_t classes = 0;
  const double statistic = misfit(data, from, to, classes);
  const auto k = static_cast<double>(classes);
  EXPECT_GT(classes, 5);
  EXPECT_LT(statistic, k + 5 * std::sqrt(2 * k));
}

TEST(ZipfData, draws_ids_with_the_stated_probability) {
  expect_fit(ZipfData({.vocab_size = 200}), 0, 300);
  expect_fit(ZipfData({.vocab_size = 200, .exponent = 0}), 0, 300);
  expect_fit(ZipfData({.vocab_size = 200, .exponent = 1.4, .seed = 9}), 1000, 1300);
}

TEST(ZipfData, drift_brings_new_ids_in_at_the_top_and_ages_the_others) {
  const ZipfData data({.vocab_size = 100, .drift = 250});  // one in four sequences
  const auto top = [&](int64_t sequence) {
    for (int32_t id = 0; id < 100; ++id)
      if (data.rank(sequence, id) == 1) return id;
    return -1;
  };
  EXPECT_EQ(top(0), top(3));
  EXPECT_NE(top(3), top(4));
  EXPECT_EQ(data.rank(0, top(4)), 100) << "what comes in was the rarest";
  for (int64_t age = 0; age < 100; ++age) EXPECT_EQ(data.rank(4 * age, top(0)), age + 1);
  EXPECT_EQ(top(400), top(0)) << "and after all of them it comes round";
  expect_fit(data, 0, 200);
  // The same counts do not fit a law without drift.
  int64_t classes = 0;
  const ZipfData still({.vocab_size = 100});
  EXPECT_GT(std::abs(data.probability(40, top(0)) - still.probability(40, top(0))), 0.1);
  EXPECT_LT(misfit(still, 0, 200, classes), 200);
}

TEST(ZipfData, bursts_repeat_one_rare_id_for_a_while) {
  const ZipfData data({.vocab_size = 1000, .burst_every = 20, .burst_length = 5, .burst_share = 0.3});
  std::set<int32_t> hot;
  for (int64_t n = 0; n < 400; ++n) {
    const int32_t id = data.burst_id(n);
    ASSERT_EQ(id >= 0, n % 20 < 5);
    if (id < 0) continue;
    EXPECT_EQ(id, data.burst_id(n / 20 * 20)) << "one id a burst";
    EXPECT_GT(data.rank(n, id), 500) << "of the lower half";
    hot.insert(id);
  }
  EXPECT_GT(hot.size(), 15u);
  int64_t count = 0;
  for (int64_t n = 0; n < 5; ++n)
    for (int64_t t = 0; t < 400; ++t) count += data.id(ZipfSplit::kTrain, n, t) == data.burst_id(n);
  EXPECT_NEAR(static_cast<double>(count), 0.3 * 2000, 4 * std::sqrt(2000 * 0.3 * 0.7));
  expect_fit(ZipfData({.vocab_size = 60, .burst_every = 4, .burst_length = 2, .burst_share = 0.5}), 0, 200);
}

TEST(ZipfData, targets_have_the_known_distribution_and_entropy) {
  const ZipfData data({.vocab_size = 50, .answers = 4, .noise = 0.2});
  constexpr int64_t kDraws = 4000;
  std::map<int32_t, double> count;
  for (int64_t n = 0; n < kDraws; ++n) ++count[data.target(ZipfSplit::kTrain, n, 0, 7)];
  double sum = 0, entropy = 0;
  for (int32_t a = 0; a < 4; ++a) {
    const double p = data.target_probability(7, a);
    EXPECT_NEAR(count[a], kDraws * p, 4 * std::sqrt(kDraws * p * (1 - p)));
    sum += p;
    entropy -= p * std::log(p);
  }
  EXPECT_NEAR(sum, 1, 1e-15);
  EXPECT_NEAR(data.entropy(), entropy, 1e-14);
  EXPECT_EQ(data.target_probability(7, 4), 0);
  EXPECT_EQ(ZipfData({.vocab_size = 50, .noise = 0}).entropy(), 0);
  std::set<int32_t> answers;
  for (int32_t id = 0; id < 50; ++id) answers.insert(data.answer(id));
  EXPECT_EQ(answers.size(), 4u) << "ids differ in their answers";
}

TEST(ZipfData, a_tables_truth_is_standard_normal_and_its_own_for_each_row) {
  const ZipfData data({.vocab_size = 100000000});
  double sum = 0, squares = 0;
  for (int32_t id = 0; id < 1000; ++id) {
    std::vector<Real> row(8), again(8);
    data.truth(id * 99999, row);
    data.truth(id * 99999, again);
    EXPECT_EQ(row, again);
    for (Real x : row) {
      sum += static_cast<double>(x);
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
  }
  EXPECT_NEAR(sum / 8000, 0, 4 / std::sqrt(8000));
  EXPECT_NEAR(squares / 8000, 1, 4 * std::sqrt(2.0 / 8000));
}

TEST(ZipfData, a_hundred_million_ids_take_no_memory) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const ZipfExamples examples({.vocab_size = 100000000, .answers = 64}, 64, ZipfSplit::kTrain);
  std::vector<int32_t> inputs(64), targets(64);
  int32_t largest = 0;
  for (int64_t n = 0; n < 100; ++n) {
    examples.read(n, inputs, targets);
    for (size_t t = 0; t < 64; ++t) {
      ASSERT_TRUE(inputs[t] >= 0 && inputs[t] < 100000000 && targets[t] >= 0 && targets[t] < 64);
      largest = std::max(largest, inputs[t]);
    }
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_GT(largest, 90000000);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 8 << 10) << "KiB";
}

TEST(ZipfExamples, are_the_same_in_any_order_and_for_any_length) {
  const ZipfConfig config{.vocab_size = 500, .burst_every = 7, .burst_length = 2};
  const ZipfExamples longer(config, 24, ZipfSplit::kTrain), shorter(config, 10, ZipfSplit::kTrain),
      val(config, 10, ZipfSplit::kVal);
  std::vector<int32_t> a(24), at(24), b(10), bt(10), c(10), ct(10);
  for (int64_t n : {5, 0, 4, 65535}) {
    longer.read(n, a, at);
    shorter.read(n, b, bt);
    EXPECT_TRUE(std::equal(b.begin(), b.end(), a.begin()));
    EXPECT_TRUE(std::equal(bt.begin(), bt.end(), at.begin()));
  }
  shorter.read(0, b, bt);
  val.read(0, c, ct);
  EXPECT_NE(b, c) << "validation has draws of its own";
  EXPECT_EQ(longer.fingerprint(), shorter.fingerprint());
  EXPECT_NE(val.fingerprint(), shorter.fingerprint());
}

Config zipf_config(const std::vector<std::string>& overrides = {}) {
  return parse_config(R"([model]
d_model = 16
n_layer = 1
n_head = 2
max_seq_len = 8
tied = false
[data]
train = "builtin:zipf"
seq_len = 8
batch_size = 16
[data.zipf]
vocab_size = 30
answers = 4
[train]
steps = 300
[optim]
lr = 1e-2
)",
                      "zipf.toml", overrides);
}

TEST(ZipfRun, comes_near_the_entropy_and_not_below_it) {
  const Config config = zipf_config();
  TrainSession session(config);
  EXPECT_EQ(session.config().model.vocab_size, 30);
  double last = 0;
  for (int64_t s = 0; s < 300; ++s) {
    const double loss = session.step().loss;
    if (s >= 250) last += loss / 50;
  }
  const double floor = ZipfData(config.data.zipf).entropy();
  EXPECT_LT(last, floor + 0.1);
  EXPECT_GT(last, floor - 0.05);
}

TEST(ZipfRun, needs_an_order_with_a_time_for_what_changes_with_it) {
  for (const char* set : {"data.zipf.drift=1", "data.zipf.burst_every=100"}) {
    try {
      zipf_config({set});
      ADD_FAILURE() << set;
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("data.order = \"shuffled\" does not follow their order"));
      EXPECT_THAT(e.hint(), HasSubstr("sequential"));
    }
    EXPECT_EQ(zipf_config({set, "data.order=sequential"}).data.order, "sequential");
  }
  EXPECT_THROW(zipf_config({"data.zipf.answers=31"}), Error);
  EXPECT_THROW(zipf_config({"data.zipf.vocab_size=100000001"}), Error);
  EXPECT_THROW(zipf_config({"data.zipf.burst_every=4", "data.order=sequential"}), Error) << "a burst lasts 8";
}

TEST(NumberTokenizer, writes_and_reads_ids) {
  const NumberTokenizer tokenizer(1000);
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{7, 0, 999}), "7 0 999 ");
  EXPECT_EQ(tokenizer.encode(" 7\n0 999 "), (std::vector<int32_t>{7, 0, 999}));
  EXPECT_EQ(tokenizer.count_bytes(std::vector<int32_t>{7, 999, kIgnored}), 6);
  EXPECT_EQ(Tokenizer::deserialize(tokenizer.serialize())->hash(), tokenizer.hash());
  for (const char* wrong : {"1000", "-1", "1.5", "seven", "99999999999999999999"})
    EXPECT_THROW(tokenizer.encode(wrong), Error) << wrong;
  for (const char* size : {"0", "2147483648", "1.5", "\"9\""})
    EXPECT_THROW(Tokenizer::deserialize(std::string(R"({"format":"rowan-tokenizer","version":1,"kind":"number","vocab_size":)") +
                                        size + "}"),
                 Error)
        << size;
}

}  // namespace
}  // namespace rowan

// Zipf's law in constant memory, against sums of the law itself.
#include "core/zipf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

double plain_sum(int64_t n, double s) {
  long double sum = 0;
  for (int64_t k = n; k >= 1; --k) sum += std::pow(static_cast<long double>(k), -static_cast<long double>(s));
  return static_cast<double>(sum);
}

TEST(ZipfSampler, knows_the_probability_of_every_rank) {
  for (double s : {0.0, 0.3, 0.999999999, 1.0, 1.5, 4.0}) {
    for (int64_t n : {1, 2, 1000, 1001, 50000}) {
      const ZipfSampler zipf(n, s);
      const double sum = plain_sum(n, s);
      for (int64_t r : {int64_t{1}, n / 2 + 1, n})
        EXPECT_NEAR(zipf.probability(r) * sum / std::pow(static_cast<double>(r), -s), 1, 1e-12) << "s " << s << ", n " << n;
    }
  }
}

// Pearson's statistic over classes has mean (classes - 1) and deviation sqrt(2 (classes - 1)) when the law holds.
TEST(ZipfSampler, draws_ranks_with_these_probabilities) {
  constexpr int64_t kDraws = 40000, kRanks = 40;
  for (double s : {0.0, 0.5, 1.0, 2.0}) {
    const ZipfSampler zipf(1000, s);
    std::vector<double> seen(kRanks + 1), expected(kRanks + 1);
    for (int64_t r = 1; r <= 1000; ++r) expected[static_cast<size_t>(std::min(r - 1, kRanks))] += kDraws * zipf.probability(r);
    for (int64_t i = 0; i < kDraws; ++i)
      ++seen[static_cast<size_t>(std::min(zipf.rank(test::test_key(3), static_cast<uint64_t>(i)) - 1, kRanks))];
    double statistic = 0;
    for (size_t c = 0; c < seen.size(); ++c) statistic += (seen[c] - expected[c]) * (seen[c] - expected[c]) / expected[c];
    EXPECT_LT(statistic, kRanks + 5 * std::sqrt(2.0 * kRanks)) << "s " << s;
    EXPECT_GT(statistic, kRanks - 4.4 * std::sqrt(2.0 * kRanks)) << "s " << s << ": too even to be drawn";
  }
}

TEST(ZipfSampler, draws_from_a_hundred_million_ranks_as_from_few) {
  constexpr int64_t kRanks = 100000000, kDraws = 20000;
  const ZipfSampler zipf(kRanks, 1);
  int64_t below[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < kDraws; ++i) {
    const int64_t r = zipf.rank(test::test_key(4), static_cast<uint64_t>(i));
    ASSERT_TRUE(r >= 1 && r <= kRanks);
    for (int d = 0; d < 4; ++d) below[d] += r <= std::pow(100, d + 1);
  }
  const double euler = 0.57721566490153286;
  for (int d = 0; d < 4; ++d) {
    const double share = (std::log(std::pow(100, d + 1)) + euler) / (std::log(1e8) + euler);  // harmonic numbers
    const double deviation = std::sqrt(kDraws * share * (1 - share));
    EXPECT_NEAR(static_cast<double>(below[d]), kDraws * share, 4 * deviation + 0.003 * kDraws) << "up to rank 100^" << d + 1;
  }
}

TEST(ZipfSampler, is_a_function_of_key_and_number) {
  const ZipfSampler zipf(5000, 1.1);
  std::vector<int64_t> forward, backward;
  for (uint64_t i = 0; i < 200; ++i) forward.push_back(zipf.rank(test::test_key(5), i));
  for (uint64_t i = 200; i-- > 0;) backward.insert(backward.begin(), zipf.rank(test::test_key(5), i));
  EXPECT_EQ(forward, backward);
  EXPECT_NE(zipf.rank(test::test_key(6), 0) + zipf.rank(test::test_key(6), 1) * 5000, forward[0] + forward[1] * 5000);
}

TEST(ZipfSampler, refuses_what_is_no_law) {
  EXPECT_THROW(ZipfSampler(0, 1), Error);
  EXPECT_THROW(ZipfSampler(int64_t{1} << 31, 1), Error);
  EXPECT_THROW(ZipfSampler(10, -0.1), Error);
  EXPECT_THROW(ZipfSampler(10, std::nan("")), Error);
}

}  // namespace
}  // namespace rowan

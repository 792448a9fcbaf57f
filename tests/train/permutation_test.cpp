#include "train/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

namespace rowan {
namespace {

Permutation order_of(int64_t n, uint64_t epoch) {
  return {n, {.seed = 5, .purpose = Purpose::kTest, .step = epoch}};
}

TEST(Permutation, hits_every_number_once_for_any_size) {
  for (int64_t n : {1, 2, 3, 4, 5, 7, 64, 100, 729, 4097}) {
    for (uint64_t epoch : {0, 1, 99}) {
      const Permutation order = order_of(n, epoch);
      std::vector<int> hits(static_cast<size_t>(n), 0);
      for (int64_t x = 0; x < n; ++x) ++hits.at(static_cast<size_t>(order(x)));
      EXPECT_EQ(hits, std::vector<int>(static_cast<size_t>(n), 1)) << n;
    }
  }
}

TEST(Permutation, all_orders_of_four_are_equally_likely) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t epoch = 0; epoch < 24 * 500; ++epoch) {
    const Permutation order = order_of(4, epoch);
    ++counts[{order(0), order(1), order(2), order(3)}];
  }
  ASSERT_EQ(counts.size(), 24u);
  double chi2 = 0;
  for (const auto& [order, count] : counts) chi2 += (count - 500.0) * (count - 500.0) / 500.0;
  EXPECT_LT(chi2, 49.7);  // 23 degrees of freedom, p = 0.001
}

TEST(Permutation, every_number_comes_to_every_place_equally_often) {
  constexpr int kSize = 30, kDraws = 6000;
  std::vector<int> counts(kSize * kSize, 0);
  for (uint64_t epoch = 0; epoch < kDraws; ++epoch) {
    const Permutation order = order_of(kSize, epoch);
    for (int x = 0; x < kSize; ++x) ++counts[static_cast<size_t>(x * kSize + order(x))];
  }
  double chi2 = 0;
  for (int c : counts) chi2 += (c - 200.0) * (c - 200.0) / 200.0;
  // 29 * 29 = 841 degrees of freedom: mean 841, deviation 41.
  EXPECT_LT(chi2, 841 + 4 * 41);
  EXPECT_GT(chi2, 841 - 4 * 41);
}

TEST(Permutation, neighbours_of_a_large_set_are_scattered) {
  // The difference of two random numbers of [0, 1) is triangular on [-1, 1]: mean of its size 1/3, deviation 0.236.
  constexpr int64_t n = int64_t{3} << 33;
  const Permutation order = order_of(n, 0);
  double sum = 0;
  constexpr int kPairs = 20000;
  for (int64_t x = 0; x < kPairs; ++x) sum += std::abs(static_cast<double>(order(2 * x + 1) - order(2 * x))) / n;
  EXPECT_NEAR(sum / kPairs, 1.0 / 3, 4 * 0.236 / std::sqrt(kPairs));
}

}  // namespace
}  // namespace rowan

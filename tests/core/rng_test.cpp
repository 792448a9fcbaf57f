#include "core/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/compare.h"

namespace rowan {
namespace {

using Block = std::array<uint32_t, 4>;

// The published known answers of philox4x32 with 10 rounds.
TEST(Rng, philox_gives_its_known_answers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Rng, every_part_of_the_key_and_the_position_matters) {
  const RandomKey base{.seed = 1, .purpose = Purpose::kTest, .site = 2, .step = 3};
  std::set<uint64_t> seen = {random_bits(base, 0)};
  const auto expect_new = [&](const RandomKey& key, uint64_t position) {
    EXPECT_TRUE(seen.insert(random_bits(key, position)).second);
  };
  RandomKey key = base;
  for (int bit = 0; bit < 64; ++bit) {
    key = base, key.seed ^= uint64_t{1} << bit;
    expect_new(key, 0);
    key = base, key.step ^= uint64_t{1} << bit;
    expect_new(key, 0);
    if (bit < 32) {
      key = base, key.site ^= uint32_t{1} << bit;
      expect_new(key, 0);
    }
    expect_new(base, uint64_t{1} << bit);
  }
  for (uint32_t purpose = 1; purpose < 7; ++purpose) {
    key = base, key.purpose = static_cast<Purpose>(purpose);
    expect_new(key, 0);
  }
}

TEST(Rng, uniform_numbers_lie_in_the_unit_interval_and_fill_it_evenly) {
  const RandomKey key{.seed = 5};
  constexpr int kBins = 64, kDraws = 1 << 18;
  std::vector<int> bins(kBins, 0);
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = random_uniform(key, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    ++bins[static_cast<size_t>(u * kBins)];
  }
  double chi_square = 0;
  for (int n : bins) chi_square += std::pow(n - kDraws / kBins, 2) / (static_cast<double>(kDraws) / kBins);
  EXPECT_NEAR(chi_square, kBins - 1, 5 * std::sqrt(2.0 * (kBins - 1)));
}

TEST(Rng, normal_numbers_have_the_moments_of_the_normal_distribution) {
  const RandomKey key{.seed = 6};
  constexpr uint64_t kDraws = 1 << 19;
  double moment[5] = {}, neighbours = 0;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double x = random_normal(key, i);
    for (int k = 1; k <= 4; ++k) moment[k] += std::pow(x, k) / kDraws;
    if (i % 2 == 1) neighbours += x * random_normal(key, i - 1) / (kDraws / 2);  // the two of one Box-Muller pair
  }
  const double unit = 5 / std::sqrt(static_cast<double>(kDraws));  // five deviations of a mean
  EXPECT_NEAR(moment[1], 0, unit);
  EXPECT_NEAR(moment[2], 1, unit * std::sqrt(2.0));
  EXPECT_NEAR(moment[3], 0, unit * std::sqrt(15.0));
  EXPECT_NEAR(moment[4], 3, unit * std::sqrt(96.0));
  EXPECT_NEAR(neighbours, 0, unit * std::sqrt(2.0));
}

TEST(Rng, integers_below_n_stay_below_it_and_come_evenly) {
  const RandomKey key{.seed = 7};
  for (const uint64_t n : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{1} << 63, ~uint64_t{0}})
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_LT(random_below(key, i, n), n);
  std::vector<int> count(5, 0);
  for (uint64_t i = 0; i < 50000; ++i) ++count[random_below(key, i, 5)];
  for (int c : count) EXPECT_NEAR(c, 10000, 5 * std::sqrt(8000.0));
}

TEST(Rng, filling_a_tensor_has_the_same_bits_for_any_thread_count) {
  EXPECT_TRUE(test::same_bits_for_any_thread_count([] {
    Tensor t({100003});
    fill_normal(t, {.seed = 8}, 1, 2);
    return std::vector<Tensor>{t};
  }));
  Tensor t({3});
  fill_normal(t, {.seed = 8}, 1, 2);
  EXPECT_EQ(t.data()[2], static_cast<Real>(1 + 2 * random_normal({.seed = 8}, 2)));
}

// FNV-1a's published values: a site stands for a parameter in the initial weights and may never change.
TEST(Rng, sites_of_names_are_fixed) {
  EXPECT_EQ(site_of(""), 0x811c9dc5u);
  EXPECT_EQ(site_of("a"), 0xe40c292cu);
  EXPECT_EQ(site_of("foobar"), 0xbf9cf968u);
}

}  // namespace
}  // namespace rowan

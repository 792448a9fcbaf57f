#include "core/negative_sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

constexpr int64_t kClasses = 60, kDraws = 200000;

// Pearson's chi-square of draws against q, classes that q gives 0 left out: they must not be drawn.
void expect_distribution(const NegativeSampler& sampler, const std::function<double(int64_t)>& q) {
  std::vector<int64_t> counts(static_cast<size_t>(sampler.classes()), 0);
  const Negatives drawn = sampler.draw(kDraws, test::test_key(1));
  for (const int32_t id : drawn.ids) ++counts[static_cast<size_t>(id)];
  double chi_square = 0, freedom = -1, total = 0;
  for (int64_t c = 0; c < sampler.classes(); ++c) {
    const double expected = q(c) * static_cast<double>(kDraws), seen = static_cast<double>(counts[static_cast<size_t>(c)]);
    EXPECT_NEAR(sampler.probability(static_cast<int32_t>(c)), q(c), 1e-12);
    total += q(c);
    if (expected == 0) {
      EXPECT_EQ(seen, 0) << "class " << c;
      continue;
    }
    chi_square += (seen - expected) * (seen - expected) / expected;
    ++freedom;
  }
  EXPECT_NEAR(total, 1, 1e-9);
  // Mean f and variance 2f: 4 deviations to either side, as a fit that is too good is no draw either.
  EXPECT_NEAR(chi_square, freedom, 4 * std::sqrt(2 * freedom));
  for (size_t i = 0; i < 100; ++i)
    EXPECT_NEAR(drawn.log_expected[i], std::log(static_cast<double>(kDraws) * q(drawn.ids[i])), 1e-9);
}

TEST(NegativeSampler, uniform_follows_its_distribution) {
  expect_distribution(NegativeSampler::uniform(kClasses), [](int64_t) { return 1.0 / kClasses; });
}

TEST(NegativeSampler, log_uniform_follows_its_distribution) {
  expect_distribution(NegativeSampler::log_uniform(kClasses), [](int64_t c) {
    const auto id = static_cast<double>(c);
    return (std::log(id + 2) - std::log(id + 1)) / std::log(kClasses + 1.0);
  });
}

TEST(NegativeSampler, weighted_follows_its_weights) {
  std::vector<double> weights;
  double total = 0;
  for (int64_t c = 0; c < kClasses; ++c) {
    weights.push_back(c % 7 == 3 ? 0 : 1000.0 / static_cast<double>((c * 37) % kClasses + 1));
    total += weights.back();
  }
  expect_distribution(NegativeSampler::weighted(weights), [&](int64_t c) { return weights[static_cast<size_t>(c)] / total; });
}

TEST(NegativeSampler, one_class_takes_all) {
  for (const NegativeSampler& sampler :
       {NegativeSampler::uniform(1), NegativeSampler::log_uniform(1), NegativeSampler::weighted(std::vector<double>{3})})
    for (const int32_t id : sampler.draw(50, test::test_key(1)).ids) EXPECT_EQ(id, 0);
}

TEST(NegativeSampler, draws_depend_on_key_and_position_alone) {
  const NegativeSampler sampler = NegativeSampler::log_uniform(100000);
  const std::vector<int32_t> few = sampler.draw(10, test::test_key(1)).ids, many = sampler.draw(100, test::test_key(1)).ids;
  EXPECT_EQ(few, std::vector<int32_t>(many.begin(), many.begin() + 10));
  RandomKey other = test::test_key(1);
  other.step = 1;
  EXPECT_NE(few, sampler.draw(10, other).ids);
}

TEST(NegativeSampler, refuses_what_is_no_distribution) {
  EXPECT_THROW(NegativeSampler::uniform(0), Error);
  EXPECT_THROW(NegativeSampler::weighted(std::vector<double>{}), Error);
  EXPECT_THROW(NegativeSampler::weighted(std::vector<double>{0, 0}), Error);
  EXPECT_THROW(NegativeSampler::weighted(std::vector<double>{1, -1}), Error);
  EXPECT_THROW(NegativeSampler::weighted(std::vector<double>{1, INFINITY}), Error);
  EXPECT_THROW(NegativeSampler::uniform(5).draw(0, {}), Error);
}

}  // namespace
}  // namespace rowan

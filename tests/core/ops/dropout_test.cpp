#include "core/ops/dropout.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

const RandomKey kKey{.seed = 42, .purpose = Purpose::kDropout, .site = 3, .step = (uint64_t{5} << 32) + 7};

TEST(Dropout, the_fast_mask_is_that_of_philox_for_any_start_and_length) {
  for (const uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, (uint64_t{1} << 34) - 100})
    for (const int64_t n : {0, 1, 3, 4, 5, 127, 128, 129, 1000}) {
      std::vector<Real> scales(static_cast<size_t>(n) + 1, 99);
      dropout_scale(kKey, 0.3, first, n, scales.data());
      for (int64_t i = 0; i < n; ++i) {
        const uint64_t e = first + static_cast<uint64_t>(i);
        const bool dropped = philox(kKey, e / 4)[e % 4] < 0.3 * 0x1p32;
        ASSERT_EQ(scales[static_cast<size_t>(i)], dropped ? 0 : static_cast<Real>(1 / 0.7)) << first << " + " << i;
      }
      ASSERT_EQ(scales.back(), 99) << "written past the end";
    }
}

TEST(Dropout, drops_the_share_that_was_asked_for_and_keeps_the_mean) {
  const int64_t n = 1 << 20;
  for (const double p : {0.01, 0.1, 0.5, 0.9}) {
    const Tensor y = dropout(Variable(Tensor::full({n}, 1)), p, kKey).value();
    double zeros = 0, sum = 0;
    for (Real v : y.values()) {
      zeros += v == 0;
      sum += static_cast<double>(v);
    }
    const double deviation = std::sqrt(p * (1 - p) / static_cast<double>(n));
    EXPECT_NEAR(zeros / static_cast<double>(n), p, 5 * deviation);
    EXPECT_NEAR(sum / static_cast<double>(n), 1, 5 * deviation / (1 - p));
  }
}

TEST(Dropout, masks_of_other_steps_sites_and_seeds_differ) {
  const Tensor ones = Tensor::full({4096}, 1);
  const auto mask = [&](RandomKey key) { return dropout(Variable(ones), 0.5, key).value(); };
  RandomKey step = kKey, site = kKey, seed = kKey;
  ++step.step, ++site.site, ++seed.seed;
  EXPECT_TRUE(same_bits(mask(kKey), mask(kKey)));
  for (const RandomKey& other : {step, site, seed}) {
    const Tensor a = mask(kKey), b = mask(other);
    int equal = 0;
    for (size_t i = 0; i < 4096; ++i) equal += a.values()[i] == b.values()[i];
    EXPECT_NEAR(equal, 2048, 5 * 32);  // as of independent coins
  }
}

TEST(Dropout, gradient) {
  for (const double p : {0.1, 0.9})
    EXPECT_TRUE(gradcheck([=](const std::vector<Variable>& in) { return dropout(in[0], p, kKey); }, {random_tensor({3, 5, 7}, 1)}));
}

TEST(Dropout, without_a_probability_it_is_the_same_variable) {
  const Variable x = Variable::leaf(Tensor::full({3}, 1));
  EXPECT_EQ(dropout(x, 0, kKey).value().data(), x.value().data());
  EXPECT_STREQ(dropout(x, 0, kKey).op(), "leaf");
}

TEST(Dropout, same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({100003}, 1);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] { return std::vector<Tensor>{dropout(Variable(x), 0.2, kKey).value()}; }));
}

TEST(Dropout, probabilities_outside_are_errors) {
  const Variable x(Tensor({3}));
  for (const double p : {-0.1, 1.0, 1.5, static_cast<double>(NAN)}) EXPECT_THROW(dropout(x, p, kKey), Error) << p;
}

}  // namespace
}  // namespace rowan

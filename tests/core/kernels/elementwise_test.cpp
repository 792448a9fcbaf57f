#include "core/kernels/elementwise.h"

#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

using namespace test;

using Forward = void (*)(const Real*, Real*, int64_t);
using Backward = void (*)(const Real*, const Real*, Real*, int64_t);
const std::vector<std::pair<Forward, Backward>> kActivations = {
    {gelu_forward, gelu_backward}, {gelu_tanh_forward, gelu_tanh_backward}, {silu_forward, silu_backward}};

// Callers cut arrays where they like and write over their inputs: neither may show in the bits.
TEST(Elementwise, results_depend_neither_on_the_cut_nor_on_writing_in_place) {
  const Tensor x = random_tensor({67}, 1, 3), dy = random_tensor({67}, 2);
  for (const auto& [forward, backward] : kActivations) {
    Tensor y({67}), dx({67});
    forward(x.data(), y.data(), 67);
    backward(x.data(), dy.data(), dx.data(), 67);
    for (int64_t cut = 0; cut <= 67; ++cut) {
      Tensor pieces = x.clone(), slopes = dy.clone();
      forward(pieces.data(), pieces.data(), cut);
      forward(pieces.data() + cut, pieces.data() + cut, 67 - cut);
      EXPECT_TRUE(same_bits(pieces, y)) << "cut at " << cut;
      backward(x.data(), slopes.data(), slopes.data(), cut);
      backward(x.data() + cut, slopes.data() + cut, slopes.data() + cut, 67 - cut);
      EXPECT_TRUE(same_bits(slopes, dx)) << "cut at " << cut;
    }
  }
}

TEST(Elementwise, slopes_are_right_over_the_whole_range) {
  const auto gelu_slope = [](double x) {
    return 0.5 * std::erfc(-x / std::sqrt(2.0)) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
  };
  const auto gelu_tanh_slope = [](double x) {
    const double c = std::sqrt(2 / M_PI), t = std::tanh(c * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
  };
  const auto silu_slope = [](double x) { return (1 + std::exp(-x) * (1 + x)) / std::pow(1 + std::exp(-x), 2); };
  const std::vector<double (*)(double)> slopes = {gelu_slope, gelu_tanh_slope, silu_slope};
  const Real one = 1;
  for (size_t k = 0; k < slopes.size(); ++k)
    for (Real x = -30; x < 30; x += Real(0.0103)) {
      Real slope = 0;
      kActivations[k].second(&x, &one, &slope, 1);
      ASSERT_NEAR(static_cast<double>(slope), slopes[k](static_cast<double>(x)), kRealIsDouble ? 1e-13 : 1e-6) << k << " at " << x;
    }
}

// The same slope as backward's, to the bit, and also where it replaces x. Far in the tails too, where exponentials end.
TEST(Elementwise, values_with_slopes_are_those_of_forward_and_backward) {
  using WithSlope = void (*)(const Real*, Real*, Real*, int64_t);
  const std::vector<std::pair<WithSlope, size_t>> both = {{gelu_with_slope, 0}, {gelu_tanh_with_slope, 1}};
  Tensor x({2003});
  for (int64_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<Real>(i - 1001) * Real(0.0203);
  const Tensor ones = Tensor::full(x.shape(), 1);
  for (const auto& [with_slope, k] : both) {
    Tensor y(x.shape()), slope(x.shape()), expected_y(x.shape()), expected_slope(x.shape());
    kActivations[k].first(x.data(), expected_y.data(), x.size());
    kActivations[k].second(x.data(), ones.data(), expected_slope.data(), x.size());
    with_slope(x.data(), y.data(), slope.data(), x.size());
    EXPECT_TRUE(same_bits(y, expected_y));
    EXPECT_TRUE(same_bits(slope, expected_slope));
    Tensor replaced = x.clone();
    with_slope(replaced.data(), y.data(), replaced.data(), x.size());
    EXPECT_TRUE(same_bits(y, expected_y));
    EXPECT_TRUE(same_bits(replaced, expected_slope));
  }
}

TEST(Elementwise, arithmetic_equals_plain_loops_for_every_length) {
  const Tensor a = random_tensor({67}, 1), b = random_tensor({67}, 2), c = random_tensor({67}, 3);
  for (int64_t n = 0; n <= 67; ++n) {
    Tensor sum = c.clone(), product = c.clone(), plus = c.clone(), scaled_plus = c.clone(), product_plus = c.clone(),
           scaled = c.clone();
    add(a.data(), b.data(), sum.data(), n);
    multiply(a.data(), b.data(), product.data(), n);
    accumulate(a.data(), plus.data(), n);
    axpy(3, a.data(), scaled_plus.data(), n);
    multiply_accumulate(a.data(), b.data(), product_plus.data(), n);
    scale(3, scaled.data(), n);
    for (int64_t i = 0; i < 67; ++i) {
      const Real u = a.data()[i], v = b.data()[i], w = c.data()[i];
      const bool in = i < n;  // past the end nothing may change
      ASSERT_EQ(sum.data()[i], in ? u + v : w);
      ASSERT_EQ(product.data()[i], in ? u * v : w);
      ASSERT_EQ(plus.data()[i], in ? w + u : w);
      ASSERT_EQ(scaled_plus.data()[i], in ? w + 3 * u : w);
      ASSERT_EQ(product_plus.data()[i], in ? w + u * v : w);
      ASSERT_EQ(scaled.data()[i], in ? w * 3 : w);
    }
  }
}

}  // namespace
}  // namespace rowan

// The gradient of the bias in qkv, which attention computes itself.
#include <gtest/gtest.h>

#include "core/ops/attention.h"
#include "core/ops/dot.h"
#include "core/ops/linear.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

struct BiasCase {
  AttentionShape shape;
  std::optional<Rope> rope;
  int64_t length;
  double dropout;
};

Tensor identity(int64_t n) {
  Tensor t = Tensor::zeros({n, n});
  for (int64_t i = 0; i < n; ++i) t.data()[i * n + i] = 1;
  return t;
}

// Attention of x + bias, as a layer uses it: the product adds the bias as a constant.
Variable with_bias(const BiasCase& c, const Variable& x, const Variable& bias) {
  const Variable qkv = linear(x, Variable(identity(c.shape.qkv_width())), Variable(bias.value()));
  const RandomKey key{.seed = 3, .purpose = Purpose::kDropout, .site = 1, .step = 1};
  return attention(qkv, c.shape, c.rope ? &*c.rope : nullptr, c.dropout, key, bias);
}

std::vector<BiasCase> cases() {
  const Rope half{.theta = 10000, .interleaved = false, .rotated = 4}, interleaved{.theta = 300, .interleaved = true, .rotated = 6};
  return {{{2, 1, 6}, std::nullopt, 5, 0},
          {{2, 2, 3}, std::nullopt, 7, 0.3},
          {{4, 2, 6}, half, 9, 0},
          {{3, 3, 6}, interleaved, 6, 0.2},
          {{1, 1, 8}, half, 70, 0}};  // 70: beyond what is computed in double
}

TEST(AttentionBias, gradient_agrees_with_differences) {
  for (const BiasCase& c : cases()) {
    const int64_t width = c.shape.qkv_width();
    EXPECT_TRUE(test::gradcheck([&](const std::vector<Variable>& in) { return with_bias(c, in[0], in[1]); },
                                {test::random_tensor({2, c.length, width}, 1), test::random_tensor({width}, 2)}))
        << "T " << c.length << " hd " << c.shape.head_dim;
  }
}

Tensor bias_gradient(const BiasCase& c) {
  const Variable x(test::random_tensor({3, c.length, c.shape.qkv_width()}, 1));
  Variable bias = Variable::leaf(test::random_tensor({c.shape.qkv_width()}, 2));
  const Variable y = with_bias(c, x, bias);
  backward(dot(y, test::random_tensor(y.shape(), 3)));
  return bias.grad();
}

TEST(AttentionBias, key_part_is_exactly_zero_without_rope) {
  const BiasCase c{{4, 2, 8}, std::nullopt, 50, 0.1};
  const Tensor gradient = bias_gradient(c);
  for (int64_t j = 0; j < gradient.size(); ++j) {
    const bool key = j >= 4 * 8 && j < (4 + 2) * 8;
    EXPECT_EQ(gradient.data()[j] == 0, key) << j;
  }
}

// A pair that turns by 1e-6 a position keeps one millionth of the terms that cancel: floats alone would leave only noise.
TEST(AttentionBias, what_a_slow_rotation_leaves_of_the_key_part_is_accurate) {
  const BiasCase slow{{1, 1, 4}, Rope{.theta = 1e12, .interleaved = false, .rotated = 4}, 12, 0};
  const BiasCase slower{{1, 1, 4}, Rope{.theta = 4e12, .interleaved = false, .rotated = 4}, 12, 0};
  const Tensor a = bias_gradient(slow), b = bias_gradient(slower);
  for (int64_t j : {5, 7}) {  // the elements of the slow pair: half the angle, half the gradient
    EXPECT_LT(std::abs(a.data()[j]), 1e-3);
    EXPECT_NEAR(a.data()[j] / b.data()[j], 2, 1e-3) << j;
  }
}

TEST(AttentionBias, has_the_same_bits_for_any_thread_count) {
  const BiasCase c{{4, 2, 6}, Rope{.theta = 10000, .interleaved = false, .rotated = 6}, 20, 0};
  EXPECT_TRUE(test::same_bits_for_any_thread_count([&] { return std::vector<Tensor>{bias_gradient(c)}; }));
}

TEST(AttentionBias, a_bias_of_another_width_is_an_error) {
  const AttentionShape shape{2, 1, 4};
  EXPECT_THROW(attention(Variable(Tensor::zeros({1, 2, 16})), shape, nullptr, 0, {}, Variable(Tensor::zeros({15}))), Error);
}

}  // namespace
}  // namespace rowan

#include "core/ops/recompute.h"

#include <gtest/gtest.h>

#include "core/ops/dot.h"
#include "core/ops/dropout.h"
#include "core/ops/gelu.h"
#include "core/ops/multiply.h"
#include "tests/support/compare.h"
#include "tests/support/gradcheck.h"
#include "tests/support/random.h"

namespace rowan {
namespace {

TEST(Recompute, gradient_agrees_with_differences) {
  const Shape shape{3, 5};
  EXPECT_TRUE(test::gradcheck(
      [](const std::vector<Variable>& in) { return recompute(in[0], [](const Variable& x) { return multiply(gelu(x), x); }); },
      {test::random_tensor(shape, 1)}));
}

TEST(Recompute, gives_the_bits_of_the_plain_graph_for_input_and_parameter_dropout_included) {
  const Tensor x = test::random_tensor({4, 6}, 1), w = test::random_tensor({4, 6}, 2), weights = test::random_tensor({4, 6}, 3);
  const auto gradients = [&](bool again) {
    Variable input = Variable::leaf(x.clone()), parameter = Variable::leaf(w.clone());
    const auto part = [&](const Variable& v) { return dropout(gelu(multiply(v, parameter)), 0.3, test::test_key(4)); };
    const Variable y = again ? recompute(input, part) : part(input);
    backward(dot(y, weights));
    return std::vector<Tensor>{y.value(), input.grad(), parameter.grad()};
  };
  const std::vector<Tensor> plain = gradients(false), again = gradients(true);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(test::same_bits(plain[i], again[i])) << i;
}

TEST(Recompute, keeps_nothing_of_the_part_between_the_passes) {
  const Shape large{256, 1024};
  const auto held = [&](bool again) {
    Variable x = Variable::leaf(test::random_tensor(large, 1));
    const auto part = [](const Variable& v) { return gelu(gelu(gelu(gelu(v)))); };
    const int64_t before = pool_stats().bytes_in_use;
    const Variable y = again ? recompute(x, part) : part(x);
    return pool_stats().bytes_in_use - before;
  };
  const int64_t one = large.size() * static_cast<int64_t>(sizeof(Real));
  EXPECT_LE(held(true), one + one / 8);
  EXPECT_GE(held(false), 4 * one);
}

}  // namespace
}  // namespace rowan

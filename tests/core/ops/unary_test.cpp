#include "core/ops/unary.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

void cube(const Real* x, Real* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i] * x[i];
}
void cube_backward(const Real* x, const Real* dy, Real* dx, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dx[i] = 3 * x[i] * x[i] * dy[i];
}

TEST(Unary, makes_an_op_of_two_loops) {
  const auto op = [](const std::vector<Variable>& in) { return unary("cube", in[0], cube, cube_backward); };
  EXPECT_TRUE(gradcheck(op, {random_tensor({4, 3}, 1)}));
  EXPECT_STREQ(op({Variable::leaf(Tensor::scalar(2))}).op(), "cube");
  EXPECT_EQ(op({Variable(Tensor::scalar(2))}).value().item(), 8);
}

TEST(Unary, covers_the_whole_of_a_long_array) {
  const Tensor x = random_tensor({3 * kElementwiseGrain + 5}, 2);
  const Tensor y = unary("cube", Variable(x), cube, cube_backward).value();
  for (int64_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.data()[i], x.data()[i] * x.data()[i] * x.data()[i]);
}

}  // namespace
}  // namespace rowan

#include "core/ops/multiply.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(Multiply, gradient) {
  const auto op = [](const std::vector<Variable>& in) { return multiply(in[0], in[1]); };
  for (const Shape& shape : {Shape{}, Shape{1, 1}, Shape{2, 3, 5}, Shape{67}})
    EXPECT_TRUE(gradcheck(op, {random_tensor(shape, 1), random_tensor(shape, 2)})) << shape;
  EXPECT_TRUE(gradcheck(op, {random_tensor({5}, 1), random_tensor({5}, 2)}, {.constant = {false, true}}));
  EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return multiply(in[0], in[0]); }, {random_tensor({7}, 3)}));
}

TEST(Multiply, shapes_that_differ_are_an_error) {
  EXPECT_THROW(multiply(Variable(Tensor({2})), Variable(Tensor({3}))), Error);
}

}  // namespace
}  // namespace rowan

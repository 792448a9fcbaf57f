#include "core/ops/add.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(Add, adds_element_by_element) {
  const Tensor a = random_tensor({3, 20011}, 1), b = random_tensor({3, 20011}, 2), y = add(Variable(a), Variable(b)).value();
  for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.data()[i], a.data()[i] + b.data()[i]);
}

TEST(Add, gradient) {
  for (const Shape& shape : {Shape{}, Shape{1, 1}, Shape{2, 3, 5}})
    EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return add(in[0], in[1]); },
                          {random_tensor(shape, 1), random_tensor(shape, 2)}));
  EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return add(in[0], in[0]); }, {random_tensor({4}, 3)}));
}

// Both inputs receive the same dy without a copy; what one of them gathers later must not reach the other.
TEST(Add, inputs_do_not_share_a_gradient) {
  Variable a = Variable::leaf(Tensor::full({3}, 1)), b = Variable::leaf(Tensor::full({3}, 1));
  const Tensor ones = Tensor::full({3}, 1);
  backward(dot(add(add(a, b), add(a, a)), ones));
  expect_close(a.grad(), std::vector<double>{3, 3, 3}, 0);
  expect_close(b.grad(), std::vector<double>{1, 1, 1}, 0);
  a.grad().fill(7);
  expect_close(b.grad(), std::vector<double>{1, 1, 1}, 0, "b after a write to a");
}

TEST(Add, two_leaves_do_not_share_a_gradient) {
  Variable a = Variable::leaf(Tensor::full({3}, 1)), b = Variable::leaf(Tensor::full({3}, 1));
  backward(dot(add(a, b), Tensor::full({3}, 1)));
  a.grad().fill(7);
  expect_close(b.grad(), std::vector<double>{1, 1, 1}, 0);
}

TEST(Add, shapes_that_differ_are_an_error_that_names_both) {
  try {
    add(Variable(Tensor({2, 3})), Variable(Tensor({3, 2})));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[add] (2, 3) and (3, 2) are not of the same shape");
  }
}

}  // namespace
}  // namespace rowan

#include "core/ops/swiglu.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(Swiglu, is_silu_of_the_gate_times_up) {
  const Tensor gate = random_tensor({3, 67}, 1, 5), up = random_tensor({3, 67}, 2);
  const Tensor y = swiglu(Variable(gate), Variable(up)).value();
  std::vector<double> expected;
  for (int64_t i = 0; i < y.size(); ++i) {
    const double g = static_cast<double>(gate.data()[i]), u = static_cast<double>(up.data()[i]);
    expected.push_back(g / (1 + std::exp(-g)) * u);
  }
  expect_close(y, expected, kRealIsDouble ? 1e-15 : 2e-7);
}

TEST(Swiglu, gradient) {
  for (const Shape& shape : {Shape{1, 1}, Shape{2, 3, 5}, Shape{67}})
    EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return swiglu(in[0], in[1]); },
                          {random_tensor(shape, 3, 2), random_tensor(shape, 4)}))
        << shape;
  EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return swiglu(in[0], in[0]); }, {random_tensor({5}, 5)}));
  EXPECT_TRUE(gradcheck([](const std::vector<Variable>& in) { return swiglu(in[0], in[1]); },
                        {random_tensor({5}, 5), random_tensor({5}, 6)}, {.constant = {true, false}}));
}

TEST(Swiglu, slope_of_a_very_negative_gate_is_zero_and_not_nan) {
  Variable gate = Variable::leaf(Tensor::full({3}, -1e4)), up = Variable::leaf(Tensor::full({3}, 1));
  backward(dot(swiglu(gate, up), Tensor::full({3}, 1)));
  for (Real g : gate.grad().values()) EXPECT_NEAR(static_cast<double>(g), 0, 1e-30);
}

TEST(Swiglu, shapes_that_differ_are_an_error) {
  EXPECT_THROW(swiglu(Variable(Tensor({2, 3})), Variable(Tensor({6}))), Error);
}

}  // namespace
}  // namespace rowan

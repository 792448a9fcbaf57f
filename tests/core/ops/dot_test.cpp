#include "core/ops/dot.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(Dot, is_the_sum_of_products) {
  const Tensor x = Tensor::from({2, 2}, std::vector<Real>{1, 2, 3, 4}),
               w = Tensor::from({2, 2}, std::vector<Real>{1, 10, 100, 1000});
  EXPECT_EQ(dot(Variable(x), w).value().item(), 4321);
  EXPECT_EQ(dot(Variable(Tensor(Shape{0})), Tensor(Shape{0})).value().item(), 0);
}

TEST(Dot, gradient) {
  const Tensor w = random_tensor({3, 5}, 1);
  EXPECT_TRUE(gradcheck([&](const std::vector<Variable>& in) { return dot(in[0], w); }, {random_tensor({3, 5}, 2)}));
}

TEST(Dot, shapes_that_differ_are_an_error) {
  EXPECT_THROW(dot(Variable(Tensor({2, 3})), Tensor({3, 2})), Error);
}

// The check itself must be able to fail.
Variable square(const Variable& x, Real slope, bool overwrite) {
  Tensor y(x.shape());
  for (int64_t i = 0; i < y.size(); ++i) y.data()[i] = x.value().data()[i] * x.value().data()[i];
  return record("square", y, {x}, [x = x.value(), slope, overwrite](const Tensor& dy, InputGrads& in) {
    Tensor& dx = in.dense(0);
    for (int64_t i = 0; i < dx.size(); ++i) dx.data()[i] = (overwrite ? 0 : dx.data()[i]) + slope * x.data()[i] * dy.data()[i];
  });
}

TEST(Gradcheck, accepts_a_right_gradient_and_names_a_wrong_one) {
  const auto with = [](Real slope, bool overwrite) {
    return gradcheck([=](const std::vector<Variable>& in) { return square(in[0], slope, overwrite); }, {random_tensor({3, 2}, 3)});
  };
  EXPECT_TRUE(with(2, false));
  const auto wrong = with(kRealIsDouble ? Real(2.0000001) : Real(2.05), false);
  EXPECT_FALSE(wrong);
  EXPECT_NE(std::string(wrong.message()).find("gradient of input 0 (3, 2), worst at element"), std::string::npos)
      << wrong.message();
  const auto overwritten = with(2, true);
  EXPECT_FALSE(overwritten);
  EXPECT_NE(std::string(overwritten.message()).find("is not added"), std::string::npos) << overwritten.message();
  EXPECT_FALSE(with(static_cast<Real>(NAN), false));
}

}  // namespace
}  // namespace rowan

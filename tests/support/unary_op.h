// What every elementwise op of one input must do, given its formula in double.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan::test {

using UnaryOp = Variable (*)(const Variable&);

// Values from -40 to 40 and the places around zero where approximations are joined.
inline Tensor wide_range_of_values() {
  Tensor x({2001});
  for (int64_t i = 0; i < x.size(); ++i) {
    const double t = static_cast<double>(i - 1000) / 1000;
    x.data()[i] = static_cast<Real>(40 * t * t * t);
  }
  return x;
}

inline void check_unary_op(UnaryOp op, double (*formula)(double)) {
  const Tensor x = wide_range_of_values(), y = op(Variable(x)).value();
  for (int64_t i = 0; i < x.size(); ++i) {
    const double in = static_cast<double>(x.data()[i]), expected = formula(in);
    EXPECT_NEAR(static_cast<double>(y.data()[i]), expected, (kRealIsDouble ? 1e-14 : 4e-7) * std::max(1e-3, std::abs(in)))
        << "at " << in;
  }
  EXPECT_TRUE(std::isnan(op(Variable(Tensor::scalar(static_cast<Real>(NAN)))).value().item()));
  EXPECT_EQ(op(Variable(Tensor::scalar(static_cast<Real>(INFINITY)))).value().item(), static_cast<Real>(INFINITY));
  for (const Shape& shape : {Shape{}, Shape{1, 1}, Shape{7}, Shape{3, 5, 2}, Shape{1, 67}})
    EXPECT_TRUE(gradcheck([=](const std::vector<Variable>& in) { return op(in[0]); }, {random_tensor(shape, 11, 2)})) << shape;
  const Tensor large = random_tensor({70001}, 12);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    Variable in = Variable::leaf(large);
    const Variable out = op(in);
    backward(dot(out, large));
    return std::vector<Tensor>{out.value(), in.grad()};
  }));
}

}  // namespace rowan::test

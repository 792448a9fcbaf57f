#include "core/ops/rms_norm.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

Variable op(const std::vector<Variable>& in) {
  return rms_norm(in[0], in[1], 1e-6);
}

TEST(RmsNorm, equals_the_formula_in_double) {
  for (const int64_t width : {1, 2, 15, 16, 17, 67, 768}) {
    const Tensor x = random_tensor({5, width}, 1, 3, 1), w = random_tensor({width}, 2);
    std::vector<double> expected;
    for (int64_t r = 0; r < 5; ++r) {
      double square = 0;
      for (Real v : x.row(r)) square += static_cast<double>(v) * static_cast<double>(v) / static_cast<double>(width);
      for (int64_t j = 0; j < width; ++j)
        expected.push_back(static_cast<double>(x.row(r)[static_cast<size_t>(j)]) / std::sqrt(square + 1e-6) *
                           static_cast<double>(w.data()[j]));
    }
    expect_close(op({Variable(x), Variable(w)}).value(), expected, kRealIsDouble ? 1e-14 : 5e-7, "width " + std::to_string(width));
  }
}

TEST(RmsNorm, gradient) {
  for (int64_t width = 2; width <= 67; width += width < 20 ? 1 : 13)
    EXPECT_TRUE(gradcheck(op, {random_tensor({3, width}, 1, 1, 0.5), random_tensor({width}, 2)})) << width;
  EXPECT_TRUE(gradcheck(op, {random_tensor({33, 5}, 6), random_tensor({5}, 7)})) << "several blocks";
  EXPECT_TRUE(gradcheck(op, {random_tensor({3, 4}, 8), random_tensor({4}, 9)}, {.constant = {true, false}}));
  EXPECT_TRUE(gradcheck(op, {random_tensor({3, 4}, 8), random_tensor({4}, 9)}, {.constant = {false, true}}));
}

TEST(RmsNorm, same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({1000, 67}, 1), w = random_tensor({67}, 2);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    std::vector<Variable> in = {Variable::leaf(x), Variable::leaf(w)};
    const Variable y = op(in);
    backward(dot(y, x));
    return std::vector<Tensor>{y.value(), in[0].grad(), in[1].grad()};
  }));
}

TEST(RmsNorm, wrong_shapes_and_eps_are_errors) {
  EXPECT_THROW(rms_norm(Variable(Tensor({2, 4})), Variable(Tensor({3})), 1e-6), Error);
  EXPECT_THROW(rms_norm(Variable(Tensor({2, 4})), Variable(Tensor({4})), -1), Error);
}

}  // namespace
}  // namespace rowan

#include "core/ops/layer_norm.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

// A large eps: with a small one, two elements come out as 1 and -1 whatever they are, and the gradient is next to nothing.
constexpr double kEps = 0.1;
Variable op_with_bias(const std::vector<Variable>& in) {
  return layer_norm(in[0], in[1], in[2], kEps);
}
Variable op_without_bias(const std::vector<Variable>& in) {
  return layer_norm(in[0], in[1], {}, kEps);
}

TEST(LayerNorm, equals_the_formula_in_double) {
  for (const int64_t width : {1, 2, 15, 16, 17, 64, 67, 768}) {
    const Tensor x = random_tensor({5, width}, 1, 3, 10), w = random_tensor({width}, 2), b = random_tensor({width}, 3);
    std::vector<double> expected;
    for (int64_t r = 0; r < 5; ++r) {
      double mean = 0, variance = 0;
      for (Real v : x.row(r)) mean += static_cast<double>(v) / static_cast<double>(width);
      for (Real v : x.row(r)) variance += std::pow(static_cast<double>(v) - mean, 2) / static_cast<double>(width);
      for (int64_t j = 0; j < width; ++j)
        expected.push_back((static_cast<double>(x.row(r)[static_cast<size_t>(j)]) - mean) / std::sqrt(variance + kEps) *
                               static_cast<double>(w.data()[j]) +
                           static_cast<double>(b.data()[j]));
    }
    expect_close(op_with_bias({Variable(x), Variable(w), Variable(b)}).value(), expected, kRealIsDouble ? 1e-13 : 2e-6,
                 "width " + std::to_string(width));
  }
}

TEST(LayerNorm, gradient) {
  for (int64_t width = 2; width <= 67; width += width < 20 ? 1 : 13)
    EXPECT_TRUE(gradcheck(op_with_bias, {random_tensor({3, width}, 1), random_tensor({width}, 2), random_tensor({width}, 3)}))
        << width;
  EXPECT_TRUE(gradcheck(op_without_bias, {random_tensor({2, 3, 7}, 4), random_tensor({7}, 5)}));
  EXPECT_TRUE(gradcheck(op_with_bias, {random_tensor({33, 5}, 6), random_tensor({5}, 7), random_tensor({5}, 8)}))
      << "several blocks";
  EXPECT_TRUE(gradcheck(op_with_bias, {random_tensor({1, 1}, 9), random_tensor({1}, 10), random_tensor({1}, 11)})) << "one element";
  EXPECT_TRUE(gradcheck(op_with_bias, {random_tensor({3, 4}, 12), random_tensor({4}, 13), random_tensor({4}, 14)},
                        {.constant = {true, false, false}}));
  EXPECT_TRUE(gradcheck(op_with_bias, {random_tensor({3, 4}, 12), random_tensor({4}, 13), random_tensor({4}, 14)},
                        {.constant = {false, true, true}}));
}

TEST(LayerNorm, a_row_of_equal_values_gives_the_bias) {
  const Tensor b = random_tensor({9}, 1);
  const Tensor y = op_with_bias({Variable(Tensor::full({2, 9}, 4)), Variable(random_tensor({9}, 2)), Variable(b)}).value();
  for (int64_t r = 0; r < 2; ++r)
    for (size_t j = 0; j < 9; ++j) EXPECT_EQ(y.row(r)[j], b.values()[j]);
}

TEST(LayerNorm, same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({1000, 67}, 1), w = random_tensor({67}, 2), b = random_tensor({67}, 3);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    std::vector<Variable> in = {Variable::leaf(x), Variable::leaf(w), Variable::leaf(b)};
    const Variable y = op_with_bias(in);
    backward(dot(y, x));
    return std::vector<Tensor>{y.value(), in[0].grad(), in[1].grad(), in[2].grad()};
  }));
}

TEST(LayerNorm, nan_stays_in_its_row) {
  Tensor x = random_tensor({3, 20}, 1);
  x.row(1)[7] = static_cast<Real>(NAN);
  const Tensor y = op_without_bias({Variable(x), Variable(Tensor::full({20}, 1))}).value();
  for (int64_t r = 0; r < 3; ++r)
    for (Real v : y.row(r)) EXPECT_EQ(std::isnan(v), r == 1);
}

TEST(LayerNorm, wrong_shapes_and_eps_are_errors) {
  const Variable x(Tensor({2, 4})), w(Tensor({4})), short_one(Tensor({3}));
  EXPECT_THROW(layer_norm(x, short_one, {}, 1e-5), Error);
  EXPECT_THROW(layer_norm(x, w, short_one, 1e-5), Error);
  EXPECT_THROW(layer_norm(x, w, {}, 0), Error);
  EXPECT_THROW(layer_norm(Variable(Tensor(Shape{2, 0})), Variable(Tensor(Shape{0})), {}, 1e-5), Error);
}

}  // namespace
}  // namespace rowan

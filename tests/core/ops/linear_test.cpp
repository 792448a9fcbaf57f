#include "core/ops/linear.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using test::expect_close;
using test::gradcheck;
using test::random_tensor;

constexpr double kTolerance = kRealIsDouble ? 1e-13 : 2e-6;

double plain_activation(Activation act, double u) {
  if (act == Activation::kGelu) return 0.5 * u * std::erfc(-u / std::numbers::sqrt2);
  if (act == Activation::kGeluTanh)
    return u /
           (1 + std::exp(-2 * std::sqrt(2 / std::numbers::pi) * (u + 0.044715 * u * u * u)));  // (1 + tanh z) / 2 = 1 / (1 + e^-2z)
  return u;
}

std::vector<double> plain_linear(const Tensor& x, const Tensor& w, const Tensor& b, Activation act) {
  const int64_t out = w.shape()[0], width = w.shape()[1], n = x.size() / width;
  std::vector<double> y;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < out; ++j) {
      double u = b.empty() ? 0 : static_cast<double>(b.data()[j]);
      for (int64_t k = 0; k < width; ++k)
        u += static_cast<double>(x.data()[i * width + k]) * static_cast<double>(w.data()[j * width + k]);
      y.push_back(plain_activation(act, u));
    }
  return y;
}

const std::vector<std::vector<int64_t>> kShapes = {{1, 1, 1}, {3, 5, 2}, {7, 1, 13}, {1, 17, 31}, {33, 67, 29}, {130, 200, 70}};
constexpr Activation kActivations[] = {Activation::kNone, Activation::kGelu, Activation::kGeluTanh};

TEST(Linear, agrees_with_plain_loops_with_and_without_bias_activation_and_tape) {
  const Threads threads(2);
  for (const auto& s : kShapes)  // N, out, in
    for (Activation act : kActivations)
      for (bool biased : {false, true}) {
        const Tensor x = random_tensor({s[0], s[2]}, 1), w = random_tensor({s[1], s[2]}, 2);
        const Tensor b = biased ? random_tensor({s[1]}, 3) : Tensor();
        const std::vector<double> expected = plain_linear(x, w, b, act);
        const Variable bias = biased ? Variable(b) : Variable();
        expect_close(linear(Variable(x), Variable(w), bias, act).value(), expected, kTolerance, "constant");
        expect_close(linear(Variable::leaf(x), Variable(w), bias, act).value(), expected, kTolerance, "taped");
        const NoGrad off;
        expect_close(linear(Variable::leaf(x), Variable(w), bias, act).value(), expected, kTolerance, "no tape");
      }
}

TEST(Linear, keeps_the_leading_dimensions) {
  const Variable w(random_tensor({5, 3}, 1));
  EXPECT_EQ(linear(Variable(random_tensor({3}, 2)), w).shape(), (Shape{5}));
  EXPECT_EQ(linear(Variable(random_tensor({2, 4, 3}, 2)), w).shape(), (Shape{2, 4, 5}));
  EXPECT_EQ(linear(Variable(random_tensor({2, 2, 4, 3}, 2)), w).shape(), (Shape{2, 2, 4, 5}));
  EXPECT_EQ(linear(Variable(Tensor(Shape{2, 0, 3})), w).shape(), (Shape{2, 0, 5}));
}

TEST(Linear, gradients_agree_with_differences) {
  for (const auto& s : {std::vector<int64_t>{1, 1, 1}, {3, 5, 2}, {7, 1, 13}, {5, 9, 4}})
    for (Activation act : kActivations) {
      const std::vector<Tensor> inputs = {random_tensor({s[0], s[2]}, 1), random_tensor({s[1], s[2]}, 2), random_tensor({s[1]}, 3)};
      EXPECT_TRUE(gradcheck([&](const auto& v) { return linear(v[0], v[1], v[2], act); }, inputs));
      EXPECT_TRUE(gradcheck([&](const auto& v) { return linear(v[0], v[1], {}, act); }, {inputs[0], inputs[1]}));
      for (size_t constant : {0, 1, 2}) {
        std::vector<bool> constants(3, false);
        constants[constant] = true;
        EXPECT_TRUE(gradcheck([&](const auto& v) { return linear(v[0], v[1], v[2], act); }, inputs, {.constant = constants}));
      }
    }
}

TEST(Linear, an_input_used_twice_gets_both_gradients) {
  EXPECT_TRUE(gradcheck([](const auto& v) { return linear(linear(v[0], v[1]), v[1], {}, Activation::kGelu); },
                        {random_tensor({4, 5}, 1, 0.5), random_tensor({5, 5}, 2, 0.5)}));
}

TEST(Linear, no_rows_give_zero_gradients) {
  Variable x = Variable::leaf(Tensor(Shape{0, 3})), w = Variable::leaf(random_tensor({4, 3}, 1));
  Variable b = Variable::leaf(random_tensor({4}, 2));
  backward(dot(linear(x, w, b, Activation::kGelu), Tensor(Shape{0, 4})));
  EXPECT_THAT(w.grad().values(), ::testing::Each(Real(0)));
  EXPECT_THAT(b.grad().values(), ::testing::Each(Real(0)));
}

TEST(Linear, gives_the_same_bits_for_any_number_of_threads) {
  EXPECT_TRUE(test::same_bits_for_any_thread_count([] {
    Variable x = Variable::leaf(random_tensor({2, 150, 130}, 1)), w = Variable::leaf(random_tensor({410, 130}, 2));
    Variable b = Variable::leaf(random_tensor({410}, 3));
    const Variable y = linear(x, w, b, Activation::kGeluTanh);
    const Tensor value = y.value();
    backward(dot(y, random_tensor({2, 150, 410}, 4)));
    return std::vector<Tensor>{value, x.grad(), w.grad(), b.grad()};
  }));
}

TEST(Linear, refuses_shapes_that_do_not_fit_and_names_them) {
  const Variable x(random_tensor({2, 24}, 1)), w(random_tensor({96, 20}, 2));
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { linear(x, w); }), "[linear] x has width 24 but weight is (96, 20)");
  EXPECT_EQ(message([&] {
              linear(Variable(random_tensor({2, 20}, 1)), w, Variable(random_tensor({95}, 3)));
            }),
            "[linear] bias is (95) but weight is (96, 20)");
  EXPECT_EQ(message([&] { linear(x, Variable(random_tensor({24}, 3))); }), "[linear] the weight must be (out, in), not (24)");
  EXPECT_THAT(message([&] {
                linear(x, Variable::leaf(random_tensor({4, 24}, 3), GradKind::kRowSparse));
              }),
              ::testing::HasSubstr("row-sparse"));
}

}  // namespace
}  // namespace rowan

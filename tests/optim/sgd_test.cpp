// sgd against torch.optim.SGD (PyTorch 1.13, float64): w after five steps with lr 0.1 and the gradients below.
#include <gtest/gtest.h>

#include "tests/support/compare.h"
#include "tests/support/optim.h"

namespace rowan {
namespace {

std::vector<double> after_five_steps(test::FieldValues fields) {
  fields["lr"] = 0.1;
  const auto rule = test::make_rule("sgd", fields);
  Parameter w(Tensor::from({2, 2}, std::vector<Real>{1, -2, Real(0.5), 3}));
  for (int s = 1; s <= 5; ++s) {
    const std::vector<double> g = {0.3 * s, -1.0, 0.2 * s * s, 0.7 / s};
    test::give_dense_grad(w, Tensor::from({2, 2}, std::vector<Real>(g.begin(), g.end())));
    rule->step("w", w, {.step = s});
  }
  return test::as_doubles(w.value());
}

constexpr double kTolerance = kRealIsDouble ? 1e-14 : 1e-6;

TEST(Sgd, plain) {
  test::expect_close(after_five_steps({}), std::vector<double>{0.55, -1.5, -0.6, 2.8401666666666667}, kTolerance);
}
TEST(Sgd, momentum) {
  test::expect_close(after_five_steps({{"momentum", 0.9}}), std::vector<double>{0.048907, -0.68559, -1.452822, 2.4824946666666667},
                     kTolerance);
}
TEST(Sgd, dampening_leaves_the_first_update_whole) {
  test::expect_close(after_five_steps({{"momentum", 0.9}, {"dampening", 0.3}}),
                     std::vector<double>{0.297379, -0.95706, -0.891546, 2.551749166666667}, kTolerance);
}
TEST(Sgd, nesterov) {
  test::expect_close(after_five_steps({{"momentum", 0.8}, {"nesterov", true}}),
                     std::vector<double>{-0.1408544, -0.575712, -2.0548736, 2.4873144}, kTolerance);
}
TEST(Sgd, weight_decay_goes_through_the_gradient) {
  test::expect_close(after_five_steps({{"weight_decay", 0.05}}),
                     std::vector<double>{0.5282375256031249, -1.45547256868125, -0.6073891034515626, 2.7681450903635416},
                     kTolerance);
  test::expect_close(after_five_steps({{"momentum", 0.9}, {"weight_decay", 0.05}}),
                     std::vector<double>{-0.00847113614687497, -0.5711318531812497, -1.474972027076563, 2.2957330136135417},
                     kTolerance);
}

TEST(Sgd, keeps_no_state_without_momentum) {
  Parameter w(Tensor::zeros({7, 3}));
  for (auto [momentum, bytes] : {std::pair{0.0, 0}, {0.9, static_cast<int>(21 * sizeof(Real))}}) {
    const auto rule = test::make_rule("sgd", {{"momentum", momentum}});
    rule->prepare("w", w);
    EXPECT_EQ(rule->state_bytes("w"), bytes);
  }
}

TEST(Sgd, nesterov_without_momentum_is_an_error) {
  EXPECT_THROW(test::make_rule("sgd", {{"nesterov", true}}), Error);
}

}  // namespace
}  // namespace rowan

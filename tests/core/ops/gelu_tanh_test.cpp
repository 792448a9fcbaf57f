#include "core/ops/gelu_tanh.h"

#include <gtest/gtest.h>

#include "tests/support/unary_op.h"

namespace rowan {
namespace {

TEST(GeluTanh, follows_its_formula_and_its_gradient) {
  test::check_unary_op(gelu_tanh,
                       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); });
}

}  // namespace
}  // namespace rowan

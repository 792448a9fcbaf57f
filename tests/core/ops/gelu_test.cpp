#include "core/ops/gelu.h"

#include <gtest/gtest.h>

#include "tests/support/unary_op.h"

namespace rowan {
namespace {

TEST(Gelu, follows_its_formula_and_its_gradient) {
  test::check_unary_op(gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); });
}

}  // namespace
}  // namespace rowan

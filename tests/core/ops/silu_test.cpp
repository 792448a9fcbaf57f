#include "core/ops/silu.h"

#include <gtest/gtest.h>

#include "tests/support/unary_op.h"

namespace rowan {
namespace {

TEST(Silu, follows_its_formula_and_its_gradient) {
  test::check_unary_op(silu, [](double x) { return x / (1 + std::exp(-x)); });
}

}  // namespace
}  // namespace rowan

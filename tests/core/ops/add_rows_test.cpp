#include "core/ops/add_rows.h"

#include <gtest/gtest.h>

#include "core/ops/gather.h"
#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(AddRows, repeats_the_rows_over_the_batch) {
  const Tensor x = random_tensor({3, 7, 5}, 1), rows = random_tensor({7, 5}, 2), y = add_rows(Variable(x), Variable(rows)).value();
  for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.data()[i], x.data()[i] + rows.data()[i % 35]);
}

TEST(AddRows, gradient) {
  const auto op = [](const std::vector<Variable>& in) { return add_rows(in[0], in[1]); };
  EXPECT_TRUE(gradcheck(op, {random_tensor({1, 1, 1}, 1), random_tensor({1, 1}, 2)}));
  EXPECT_TRUE(gradcheck(op, {random_tensor({3, 2, 5}, 3), random_tensor({2, 5}, 4)}));
  EXPECT_TRUE(gradcheck(op, {random_tensor({3, 2, 5}, 5), random_tensor({5}, 6)}));
}

TEST(AddRows, gradient_of_a_row_sparse_position_table) {
  const Ids positions({4}, {0, 1, 2, 3});
  EXPECT_TRUE(gradcheck([&](const std::vector<Variable>& in) { return add_rows(in[0], gather(in[1], positions)); },
                        {random_tensor({2, 4, 3}, 7), random_tensor({9, 3}, 8)},
                        {.kinds = {GradKind::kDense, GradKind::kRowSparse}}));
}

TEST(AddRows, same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({5, 100, 67}, 9), rows = random_tensor({100, 67}, 10);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    Variable a = Variable::leaf(x), b = Variable::leaf(rows);
    const Variable y = add_rows(a, b);
    backward(dot(y, x));
    return std::vector<Tensor>{y.value(), a.grad(), b.grad()};
  }));
}

TEST(AddRows, rows_that_are_not_the_end_of_x_are_an_error) {
  EXPECT_THROW(add_rows(Variable(Tensor({2, 3, 4})), Variable(Tensor({2, 4}))), Error);
  EXPECT_THROW(add_rows(Variable(Tensor({4})), Variable(Tensor({3, 4}))), Error);
}

}  // namespace
}  // namespace rowan

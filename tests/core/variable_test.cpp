#include "core/variable.h"

#include <gtest/gtest.h>

#include "core/ops/add.h"
#include "core/ops/dot.h"
#include "core/ops/gather.h"
#include "core/ops/multiply.h"
#include "core/parameter.h"
#include "tests/support/compare.h"

namespace rowan {
namespace {

using test::expect_close;

Variable leaf(Real value) {
  return Variable::leaf(Tensor::scalar(value));
}
Real grad_of(Variable& v) {
  return v.grad().item();
}

TEST(Variable, gradients_of_leaves_add_up_until_they_are_cleared) {
  Variable x = leaf(3);
  EXPECT_TRUE(x.grad().empty());
  for (int i = 1; i <= 3; ++i) {
    backward(multiply(x, x));
    EXPECT_EQ(grad_of(x), static_cast<Real>(6 * i));
  }
  x.clear_grad();
  EXPECT_TRUE(x.grad().empty());
}

TEST(Variable, a_diamond_runs_each_op_once_with_its_whole_gradient) {
  Variable x = leaf(2);
  int calls = 0;
  const Variable shared = record("shared", x.value().clone(), {x}, [&](const Tensor& dy, InputGrads& in) {
    ++calls;
    in.add(0, dy);
  });
  const Variable left = multiply(shared, shared), right = multiply(shared, left);  // x^2 and x^3
  backward(add(left, right));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(grad_of(x), 2 * 2 + 3 * 4);
}

TEST(Variable, constants_and_what_depends_on_them_alone_stay_off_the_tape) {
  const Variable c(Tensor::scalar(2));
  EXPECT_FALSE(c.needs_grad());
  EXPECT_FALSE(multiply(c, c).needs_grad());
  EXPECT_STREQ(multiply(c, c).op(), "constant");
  Variable x = leaf(3);
  backward(multiply(x, c));
  EXPECT_EQ(grad_of(x), 2);
}

TEST(Variable, no_grad_records_nothing_and_nests) {
  const Variable x = leaf(3);
  EXPECT_TRUE(grad_enabled());
  {
    const NoGrad outer;
    {
      const NoGrad inner;
      EXPECT_FALSE(multiply(x, x).needs_grad());
    }
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE(multiply(x, x).needs_grad());
  }
  EXPECT_TRUE(multiply(x, x).needs_grad());
}

TEST(Variable, a_chain_of_two_hundred_thousand_ops_runs_and_is_dropped_without_recursion) {
  Variable x = leaf(1);
  const Variable zero(Tensor::scalar(0));
  for (const bool run : {true, false}) {
    Variable y = x;
    for (int i = 0; i < 200000; ++i) y = add(y, zero);
    if (run) backward(y);
  }
  EXPECT_EQ(grad_of(x), 1);
}

TEST(Variable, a_wide_and_deep_graph_is_dropped_without_recursion_too) {
  Variable y = leaf(1);
  for (int i = 0; i < 100000; ++i) y = add(y, y);
  EXPECT_TRUE(y.needs_grad());
}

TEST(Variable, a_second_backward_through_the_same_graph_is_an_error) {
  Variable x = leaf(3);
  const Variable square = multiply(x, x), loss = add(square, square);
  backward(loss);
  EXPECT_THROW(backward(loss), Error);
  EXPECT_THROW(backward(multiply(square, x)), Error) << "a part that was used";
}

TEST(Variable, the_tape_keeps_no_value_that_no_backward_needs) {
  const Variable x = Variable::leaf(Tensor::full({3, 1000}, 2)), zero(Tensor::full({3, 1000}, 0));
  const int64_t before = pool_stats().bytes_in_use;
  Variable y = add(x, zero);
  const int64_t one_value = pool_stats().bytes_in_use - before;
  for (int i = 0; i < 10; ++i) y = add(y, zero);
  EXPECT_EQ(pool_stats().bytes_in_use - before, one_value);
  backward(y, Tensor::full({3, 1000}, 3));
  EXPECT_TRUE(test::same_bits(Variable(x).grad(), Tensor::full({3, 1000}, 3)));
}

TEST(Variable, backward_frees_what_the_ops_kept) {
  Variable x = Variable::leaf(Tensor::full({1 << 16}, 1));
  const Tensor weights = Tensor::full({1 << 16}, 1);
  const int64_t before = pool_stats().bytes_in_use;
  Variable y = x;
  for (int i = 0; i < 8; ++i) y = multiply(y, y);
  const Variable loss = dot(y, weights);
  y = Variable();
  EXPECT_GT(pool_stats().bytes_in_use - before, 7 * (int64_t{1} << 16) * static_cast<int64_t>(sizeof(Real)));
  backward(loss);
  x.clear_grad();
  EXPECT_LT(pool_stats().bytes_in_use - before, 1 << 16);
}

TEST(Variable, backward_wants_one_element_that_depends_on_a_leaf) {
  EXPECT_THROW(backward(Variable::leaf(Tensor({2}))), Error);
  EXPECT_THROW(backward(Variable()), Error);
  EXPECT_THROW(backward(Variable(Tensor::scalar(1))), Error);
}

TEST(Variable, a_row_sparse_leaf_must_be_a_table) {
  EXPECT_THROW(Variable::leaf(Tensor({3}), GradKind::kRowSparse), Error);
  EXPECT_EQ(Variable::leaf(Tensor({3, 2}), GradKind::kRowSparse).row_grad().table_rows(), 3);
}

TEST(InputGrads, a_handle_that_add_kept_is_not_written_through) {
  Variable x = Variable::leaf(Tensor::full({2}, 1));
  const Tensor parked = Tensor::full({2}, 5);
  // An op that hands over a tensor which somebody else still holds, and another one that adds to the same gradient.
  const Variable y = record("parked", Tensor::scalar(0), {x}, [parked](const Tensor&, InputGrads& in) { in.add(0, parked); });
  const Variable z = dot(x, Tensor::full({2}, 1));
  backward(add(y, z));
  expect_close(x.grad(), std::vector<double>{6, 6}, 0);
  expect_close(parked, std::vector<double>{5, 5}, 0, "the parked tensor");
}

TEST(InputGrads, a_handle_for_an_intermediate_is_not_written_through) {
  Variable x = leaf(1);
  const Tensor parked = Tensor::scalar(5);
  const Variable middle = add(x, Variable(Tensor::scalar(0)));
  const Variable late = record("late", Tensor::scalar(0), {middle}, [parked](const Tensor&, InputGrads& in) { in.add(0, parked); });
  backward(add(add(middle, middle), late));
  EXPECT_EQ(grad_of(x), 7);
  EXPECT_EQ(parked.item(), 5);
}

TEST(InputGrads, a_fresh_target_is_told_from_one_to_add_to) {
  Variable x = leaf(1);
  std::vector<bool> fresh;
  const auto op = [&] {
    return record("op", Tensor::scalar(0), {x}, [&fresh](const Tensor& dy, InputGrads& in) {
      const InputGrads::Target t = in.target(0);
      fresh.push_back(t.fresh);
      *t.tensor.data() = (t.fresh ? 0 : *t.tensor.data()) + 10 * dy.item();
    });
  };
  backward(add(op(), op()));
  EXPECT_EQ(fresh, (std::vector<bool>{true, false}));
  EXPECT_EQ(grad_of(x), 20);
}

TEST(InputGrads, a_gradient_of_the_wrong_size_is_an_error) {
  const Variable x = leaf(1);
  EXPECT_THROW(
      backward(record("bad", Tensor::scalar(0), {x}, [](const Tensor&, InputGrads& in) { in.add(0, Tensor::full({2}, 1)); })),
      Error);
}

TEST(InputGrads, empty_inputs_want_nothing) {
  const Variable x = leaf(1);
  backward(record("op", Tensor::scalar(0), {x, Variable(), Variable(Tensor::scalar(1))}, [](const Tensor&, InputGrads& in) {
    EXPECT_TRUE(in.wants(0));
    EXPECT_FALSE(in.wants(1));
    EXPECT_FALSE(in.wants(2));
  }));
}

TEST(Parameter, knows_whether_a_gradient_came) {
  Parameter dense(Tensor::full({3, 2}, 1)), sparse(Tensor::full({3, 2}, 1), GradKind::kRowSparse), absent;
  EXPECT_FALSE(absent.present());
  EXPECT_FALSE(dense.has_grad());
  EXPECT_FALSE(sparse.has_grad());
  const Ids ids({1}, {2});
  const Tensor ones = Tensor::full({1, 2}, 1);
  backward(dot(add(gather(dense.var, ids), gather(sparse.var, ids)), ones));
  EXPECT_TRUE(dense.has_grad());
  EXPECT_TRUE(sparse.has_grad());
  sparse.var.clear_grad();
  EXPECT_FALSE(sparse.has_grad());
}

}  // namespace
}  // namespace rowan

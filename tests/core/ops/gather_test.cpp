#include "core/ops/gather.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

TEST(Gather, copies_the_rows_of_the_ids) {
  const Tensor table = random_tensor({11, 3}, 1);
  const Ids ids = random_ids({5, 40}, 11, 2);
  const Tensor y = gather(Variable(table), ids).value();
  ASSERT_EQ(y.shape(), (Shape{5, 40, 3}));
  for (int64_t i = 0; i < ids.size(); ++i)
    for (int64_t j = 0; j < 3; ++j) ASSERT_EQ(y.data()[i * 3 + j], table.data()[ids[i] * 3 + j]);
}

// With a gradient wanted, rows are copied in the order of their ids, and large results past the caches.
TEST(Gather, copies_the_same_rows_whether_or_not_a_gradient_is_wanted_and_whatever_the_size) {
  const Threads threads(2);
  for (const int64_t width : {1, 3, 16, 67, 256, 259, 1040})
    for (const int64_t tokens : {1, 37, 4096})
      for (const int64_t rows : {5, 5000}) {
        const Tensor table = random_tensor({rows, width}, 1);
        const Ids ids = random_ids({1, tokens}, rows, 2);
        const Tensor y = gather(Variable::leaf(table, GradKind::kRowSparse), ids).value();
        ASSERT_TRUE(same_bits(y, gather(Variable(table), ids).value())) << width << " " << tokens << " " << rows;
        for (int64_t i = 0; i < tokens; ++i) ASSERT_EQ(y.data()[i * width], table.data()[ids[i] * width]);
      }
}

TEST(Gather, gradient_of_a_row_sparse_and_a_dense_table) {
  for (const int64_t width : {1, 2, 17, 67})
    for (const GradKind kind : {GradKind::kRowSparse, GradKind::kDense}) {
      const Ids ids = random_ids({2, 5}, 7, 3);
      EXPECT_TRUE(gradcheck([&](const std::vector<Variable>& in) { return gather(in[0], ids); }, {random_tensor({7, width}, 4)},
                            {.kinds = {kind}}))
          << width;
    }
}

TEST(Gather, a_row_sparse_table_holds_only_the_rows_that_were_read) {
  Variable table = Variable::leaf(random_tensor({1000, 4}, 5), GradKind::kRowSparse);
  backward(dot(gather(table, Ids({1, 4}, {7, 999, 7, 0})), random_tensor({1, 4, 4}, 6)));
  table.row_grad().coalesce();
  EXPECT_EQ(table.row_grad().ids(), (std::vector<int32_t>{0, 7, 999}));
  EXPECT_EQ(table.row_grad().counts(), (std::vector<int32_t>{1, 2, 1}));
  EXPECT_TRUE(table.grad().empty());
}

TEST(Gather, dense_and_row_sparse_gradients_have_the_same_bits_for_any_thread_count) {
  const Tensor values = random_tensor({50, 33}, 7), weights = random_tensor({8, 600, 33}, 8);
  const Ids ids = random_ids({8, 600}, 50, 9);  // runs of about 96 repeated ids
  EXPECT_TRUE(same_bits_for_any_thread_count([&] {
    Variable dense = Variable::leaf(values), sparse = Variable::leaf(values, GradKind::kRowSparse);
    backward(dot(gather(dense, ids), weights));
    backward(dot(gather(sparse, ids), weights));
    sparse.row_grad().coalesce();
    EXPECT_TRUE(same_bits(dense.grad(), sparse.row_grad().values()));
    return std::vector<Tensor>{dense.grad()};
  }));
}

TEST(Gather, an_id_outside_the_table_is_an_error_with_id_place_and_size) {
  Variable table = Variable::leaf(random_tensor({10, 4}, 5), GradKind::kRowSparse);
  for (const int32_t id : {-1, 10}) {
    try {
      gather(table, Ids({2, 3}, {0, 1, 2, 3, 4, id}));
      FAIL() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), join_text("[gather] id ", id, " at position (1, 2) is outside [0, 10)"));
    }
  }
  EXPECT_TRUE(table.row_grad().empty());
}

TEST(Gather, no_ids_give_an_empty_result_and_no_gradient) {
  Variable table = Variable::leaf(random_tensor({10, 4}, 5));
  const Variable y = gather(table, Ids(Shape{0, 3}));
  EXPECT_EQ(y.shape(), (Shape{0, 3, 4}));
  backward(dot(y, Tensor(Shape{0, 3, 4})));
  for (Real g : table.grad().values()) EXPECT_EQ(g, 0);
}

}  // namespace
}  // namespace rowan

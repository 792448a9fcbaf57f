// Tables past 2^31 elements: rows at their end are read and updated in their own place. Only the pages that are touched take
// memory.
#include <gtest/gtest.h>

#include <new>

#include "core/ops/gather.h"
#include "optim/optimizer.h"

namespace rowan {
namespace {

constexpr int64_t kWidth = 256, kRows = (int64_t{1} << 23) + 2;  // 2^31 + 512 elements
constexpr auto kLast = static_cast<int32_t>(kRows - 1);

// A table without values; where the system does not promise so much memory at once, none.
Tensor large_table() {
  try {
    return Tensor({kRows, kWidth});
  } catch (const std::bad_alloc&) {
    return {};
  }
}

void fill_row(Tensor& table, int64_t row, Real value) {
  std::fill_n(table.data() + row * kWidth, kWidth, value);
}

TEST(LargeTable, rows_past_2_to_the_31_elements_are_read_and_updated_in_their_place) {
#ifdef ROWAN_SANITIZED
  GTEST_SKIP() << "shadow memory for all of it";
#endif
  Tensor table = large_table();
  if (table.empty())
    GTEST_SKIP() << "no " << (kRows * kWidth * static_cast<int64_t>(sizeof(Real)) >> 30) << " GiB of address space";
  ASSERT_GT(table.size(), int64_t{1} << 31);
  // 2^31 elements before the last two rows lie those that a 32-bit index would take them for.
  for (const int64_t row : {int64_t{0}, int64_t{1}, kRows - 2, kRows - 1}) fill_row(table, row, static_cast<Real>(row % 1000));
  Parameter p(table, GradKind::kRowSparse);
  const Ids ids = Ids({1, 2}, {kLast, 0});
  const Variable read = gather(p.var, ids);
  EXPECT_EQ(read.value().data()[0], static_cast<Real>((kRows - 1) % 1000));
  EXPECT_EQ(read.value().data()[kWidth], 0);
  p.row_grad().append(ids, Tensor::full({2, kWidth}, 1));
  const auto optimizer = make_optimizer("sgd");
  optimizer->prepare("table", p);
  optimizer->step("table", p, {});
  const auto lr = static_cast<Real>(optimizer->lr());
  EXPECT_EQ(table.data()[(kRows - 1) * kWidth + kWidth - 1], static_cast<Real>((kRows - 1) % 1000) - lr);
  EXPECT_EQ(table.data()[(kRows - 2) * kWidth], static_cast<Real>((kRows - 2) % 1000));
  EXPECT_EQ(table.data()[0], -lr);
  EXPECT_EQ(table.data()[kWidth], 1);
}

}  // namespace
}  // namespace rowan

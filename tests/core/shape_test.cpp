#include "core/shape.h"

#include <gtest/gtest.h>

namespace rowan {
namespace {

TEST(Shape, knows_its_size_rank_and_rows) {
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ(Shape{}.back(), 1);
  EXPECT_EQ(Shape{}.rows(), 1);
  const Shape s{2, 3, 5};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.size(), 30);
  EXPECT_EQ(s.back(), 5);
  EXPECT_EQ(s.rows(), 6);
  EXPECT_EQ(s.str(), "(2, 3, 5)");
  EXPECT_EQ(Shape({4, 0}).size(), 0);
  EXPECT_EQ(Shape({4, 0}).rows(), 0);
}

TEST(Shape, is_equal_only_with_the_same_rank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{6}) == (Shape{6, 0}));
  EXPECT_FALSE((Shape{6}) == (Shape{6, 1}));
}

TEST(Shape, impossible_dimensions_are_errors) {
  EXPECT_THROW((Shape{2, -1}), Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1}), Error);
  Shape full{1, 1, 1, 1};
  EXPECT_THROW(full.append(1), Error);
}

TEST(Shape, too_many_elements_are_an_error_and_not_an_overflow) {
  const int64_t big = int64_t{1} << 31;
  EXPECT_THROW((Shape{big, big, big}), Error);
  EXPECT_THROW((Shape{big, big}), Error) << "the bytes would not fit";
  EXPECT_EQ((Shape{big, 1 << 20}).size(), big << 20);
}

}  // namespace
}  // namespace rowan

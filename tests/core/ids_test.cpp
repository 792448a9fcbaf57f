#include "core/ids.h"

#include <gtest/gtest.h>

namespace rowan {
namespace {

std::string message_of(const Ids& ids, int64_t rows) {
  try {
    check_ids(ids, rows, "table");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Ids, have_a_shape_and_start_as_zeros) {
  const Ids ids({2, 3});
  EXPECT_EQ(ids.size(), 6);
  for (int32_t id : ids.values()) EXPECT_EQ(id, 0);
  EXPECT_EQ(Ids().size(), 0);
  EXPECT_THROW(Ids({2, 2}, {1, 2, 3}), Error);
}

TEST(Ids, the_check_names_id_place_and_table_size) {
  EXPECT_EQ(message_of(Ids({2, 2}, {0, 1, 2, 3}), 4), "");
  EXPECT_EQ(message_of(Ids({2, 2}, {0, 1, 4, 3}), 4), "[table] id 4 at position (1, 0) is outside [0, 4)");
  EXPECT_EQ(message_of(Ids({3}, {0, 1, -1}), 4), "[table] id -1 at position 2 is outside [0, 4)");
  EXPECT_EQ(message_of(Ids({1}, {2147483647}), 2147483647), "[table] id 2147483647 at position 0 is outside [0, 2147483647)");
  EXPECT_EQ(message_of(Ids(Shape{0, 0}), 0), "");
}

}  // namespace
}  // namespace rowan

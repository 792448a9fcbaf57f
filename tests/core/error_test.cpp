#include "core/error.h"

#include <gtest/gtest.h>

#include <locale>

namespace rowan {
namespace {

struct Grouped : std::numpunct<char> {
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  char do_decimal_point() const override { return ','; }
};

TEST(Error, carries_message_kind_and_hint) {
  const Error e("[here] wrong", ErrorKind::kData, "do this");
  EXPECT_STREQ(e.what(), "[here] wrong");
  EXPECT_EQ(e.kind(), ErrorKind::kData);
  EXPECT_EQ(e.hint(), "do this");
  EXPECT_EQ(Error("x").kind(), ErrorKind::kUsage);
  EXPECT_TRUE(Error("x").hint().empty());
}

TEST(Error, a_check_throws_with_its_parts_joined) {
  try {
    ROWAN_CHECK(1 == 2, "[place] expected ", 3, ", got ", 4.5);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[place] expected 3, got 4.5");
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
  }
  try {
    fail_data("[file] short by ", 7, " bytes");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
  }
}

TEST(Error, a_check_that_holds_does_not_build_its_message) {
  int built = 0;
  const auto message = [&] { return ++built; };
  ROWAN_CHECK(true, "never ", message());
  EXPECT_EQ(built, 0);
}

TEST(Error, numbers_are_printed_the_same_in_every_locale) {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Grouped));
  const std::string text = join_text(1234567, " ", 0.5);
  std::locale::global(before);
  EXPECT_EQ(text, "1234567 0.5");
}

}  // namespace
}  // namespace rowan

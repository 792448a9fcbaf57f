#include "core/registry.h"

#include <gtest/gtest.h>

namespace rowan {
namespace {

struct Animal {
  explicit Animal(int count) : legs(count) {}
  int legs;
};

TEST(Registry, makes_things_by_name_and_lists_them_sorted) {
  Registry<Animal> registry;
  EXPECT_TRUE(registry.add("spider", [] { return std::make_unique<Animal>(8); }));
  EXPECT_TRUE(registry.add("ant", [] { return std::make_unique<Animal>(6); }));
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"ant", "spider"}));
  EXPECT_TRUE(registry.contains("ant"));
  EXPECT_FALSE(registry.contains("snake"));
  EXPECT_EQ(registry.make("spider")->legs, 8);
  EXPECT_NE(registry.make("ant").get(), registry.make("ant").get());
}

TEST(Registry, an_unknown_name_is_an_error_that_lists_the_known_ones) {
  Registry<Animal> registry;
  registry.add("b", [] { return std::make_unique<Animal>(1); });
  registry.add("a", [] { return std::make_unique<Animal>(2); });
  try {
    registry.make("c");
    FAIL() << "no error";
  } catch (const Error& e) {
    const std::string text = std::string(e.what()) + e.hint();
    EXPECT_NE(text.find("'c'"), std::string::npos) << text;
    EXPECT_NE(text.find("a, b"), std::string::npos) << text;
  }
}

TEST(Registry, a_name_taken_twice_is_an_error_and_the_first_stays) {
  Registry<Animal> registry;
  registry.add("a", [] { return std::make_unique<Animal>(1); });
  EXPECT_THROW(registry.add("a", [] { return std::make_unique<Animal>(2); }), Error);
  EXPECT_EQ(registry.make("a")->legs, 1);
}

}  // namespace
}  // namespace rowan

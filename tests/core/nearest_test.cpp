#include "core/nearest.h"

#include <gtest/gtest.h>

#include <random>

namespace rowan {
namespace {

// The recursive definition, which shares nothing with the table that the header fills.
size_t by_definition(std::string_view a, std::string_view b) {
  if (a.empty()) return b.size();
  if (b.empty()) return a.size();
  const size_t i = a.size() - 1, j = b.size() - 1;
  size_t best = std::min({by_definition(a.substr(0, i), b) + 1, by_definition(a, b.substr(0, j)) + 1,
                          by_definition(a.substr(0, i), b.substr(0, j)) + (a[i] == b[j] ? 0 : 1)});
  if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
    best = std::min(best, by_definition(a.substr(0, i - 1), b.substr(0, j - 1)) + 1);
  }
  return best;
}

TEST(Nearest, distance_equals_its_recursive_definition) {
  std::mt19937 random(7);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::string a, b;
    for (size_t n = random() % 7; n > 0; --n) a += static_cast<char>('a' + random() % 3);
    for (size_t n = random() % 7; n > 0; --n) b += static_cast<char>('a' + random() % 3);
    EXPECT_EQ(edit_distance(a, b), by_definition(a, b)) << a << " " << b;
  }
}

TEST(Nearest, a_slip_finds_the_name_and_a_stranger_finds_none) {
  const std::vector<std::string> known = {"d_model", "n_layer", "n_head", "bias"};
  EXPECT_EQ(nearest_name("d_modle", known), "d_model");
  EXPECT_EQ(nearest_name("n_layers", known), "n_layer");
  EXPECT_EQ(nearest_name("baïs", known), "");  // three of five bytes
  EXPECT_EQ(nearest_name("bais", known), "bias");
  EXPECT_EQ(nearest_name("temperature", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("x", known), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(Nearest, a_name_without_end_costs_no_time) {
  EXPECT_EQ(nearest_name(std::string(10'000'000, 'x'), {std::string(1'000'000, 'x')}), "");
}

}  // namespace
}  // namespace rowan

#include "core/ops/rope.h"

#include <gtest/gtest.h>

#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using namespace test;

// The definition, pair by pair.
std::vector<double> rotated_by_definition(const Tensor& x, const Rope& rope, int64_t first) {
  std::vector<double> y = as_doubles(x);
  const int64_t length = x.shape()[1], heads = x.shape()[2], width = x.shape()[3];
  for (int64_t h = 0; h < x.shape()[0] * length * heads; ++h)
    for (int64_t i = 0; i < rope.rotated / 2; ++i) {
      const auto position = static_cast<double>(first + h / heads % length);
      const double angle = position * std::pow(rope.theta, -2.0 * static_cast<double>(i) / static_cast<double>(rope.rotated));
      const auto a = static_cast<size_t>(h * width + (rope.interleaved ? 2 * i : i));
      const size_t b = a + static_cast<size_t>(rope.interleaved ? 1 : rope.rotated / 2);
      const double u = y[a], v = y[b];
      y[a] = u * std::cos(angle) - v * std::sin(angle);
      y[b] = v * std::cos(angle) + u * std::sin(angle);
    }
  return y;
}

TEST(Rope, equals_the_definition_for_both_pairings_fractions_and_offsets) {
  for (const bool interleaved : {false, true})
    for (const int64_t rotated : {0, 2, 10, 64, 66})
      for (const int64_t first : {0, 1, 63, 1000}) {
        const Rope settings{10000, interleaved, rotated};
        const Tensor x = random_tensor({2, 130, 3, 67}, 1);
        expect_close(rope(Variable(x), settings, first).value(), rotated_by_definition(x, settings, first),
                     kRealIsDouble ? 1e-12 : 3e-7, join_text("interleaved ", interleaved, " rotated ", rotated, " first ", first));
      }
}

TEST(Rope, a_position_has_the_same_bits_wherever_the_table_starts) {
  const Rope settings{10000, false, 32};
  const RopeTable whole(settings, 0, 300);
  for (const int64_t first : {1, 63, 64, 65, 299}) {
    const RopeTable part(settings, first, 1);
    for (int64_t i = 0; i < 16; ++i) {
      EXPECT_EQ(part.cos(0)[i], whole.cos(first)[i]);
      EXPECT_EQ(part.sin(0)[i], whole.sin(first)[i]);
    }
  }
}

TEST(Rope, gradient) {
  for (const bool interleaved : {false, true})
    for (const int64_t rotated : {2, 4, 6})
      EXPECT_TRUE(gradcheck(
          [=](const std::vector<Variable>& in) {
            return rope(in[0], {100, interleaved, rotated}, 5);
          },
          {random_tensor({2, 3, 2, 7}, 1)}));
}

TEST(Rope, rotating_back_undoes_it) {
  for (const bool interleaved : {false, true}) {
    const Rope settings{10000, interleaved, 66};
    const RopeTable table(settings, 77, 1);
    const Tensor x = random_tensor({5, 67}, 1), y = x.clone();
    Tensor z = y;
    rotate(z.data(), 5, 67, table.cos(0), table.sin(0), settings);
    EXPECT_FALSE(is_close(z, x, 0.1));
    rotate_back(z.data(), 5, 67, table.cos(0), table.sin(0), settings);
    expect_close(z, x, kRealIsDouble ? 1e-15 : 2e-7);
  }
}

TEST(Rope, same_bits_for_any_thread_count) {
  const Tensor x = random_tensor({3, 200, 2, 8}, 1);
  EXPECT_TRUE(same_bits_for_any_thread_count([&] { return std::vector<Tensor>{rope(Variable(x), {10000, false, 8}, 9).value()}; }));
}

TEST(Rope, impossible_settings_are_errors) {
  const Variable x(Tensor({1, 2, 1, 8}));
  EXPECT_THROW(rope(x, {10000, false, 3}, 0), Error);
  EXPECT_THROW(rope(x, {10000, false, 10}, 0), Error);
  EXPECT_THROW(rope(x, {0, false, 8}, 0), Error);
  EXPECT_THROW(rope(x, {10000, false, 8}, -1), Error);
  EXPECT_THROW(rope(Variable(Tensor({2, 8})), {10000, false, 8}, 0), Error);
}

}  // namespace
}  // namespace rowan

#include "layers/gpt_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace rowan {
namespace {

GptConfig sized(int64_t d_model, int64_t n_head) {
  GptConfig c;
  c.d_model = d_model;
  c.n_head = n_head;
  c.vocab_size = 10;
  return c;
}

TEST(GptConfig, resolve_fills_in_the_zeros) {
  GptConfig c = sized(48, 6);
  c.resolve();
  EXPECT_EQ(c.n_kv_head, 6);
  EXPECT_EQ(c.d_ff, 192);
  c.resolve();  // nothing left to do
  EXPECT_EQ(c.d_ff, 192);
}

TEST(GptConfig, swiglu_width_is_eight_thirds_rounded_up_to_32) {
  // By hand: 8/3*12 = 32; 8/3*13 = 34.7; 8/3*128 = 341.3; 8/3*384 = 1024; 8/3*385 = 1026.7; 8/3*4096 = 10922.7.
  const int64_t expected[][2] = {{12, 32}, {13, 64}, {128, 352}, {384, 1024}, {385, 1056}, {4096, 10944}};
  for (const auto& [d_model, d_ff] : expected) {
    GptConfig c = sized(d_model, 1);
    c.mlp = "swiglu";
    EXPECT_EQ(c.ff_width(), d_ff) << d_model;
  }
}

TEST(GptConfig, given_sizes_stay) {
  GptConfig c = sized(48, 6);
  c.n_kv_head = 2;
  c.d_ff = 7;
  c.resolve();
  EXPECT_EQ(c.n_kv_head, 2);
  EXPECT_EQ(c.d_ff, 7);
}

TEST(GptConfig, rotated_width_is_the_fraction_that_was_meant) {
  for (const int64_t width : {2, 14, 98}) {  // 14/98 * 98 falls short of 14 in floating point for some heads
    GptConfig c = sized(98, 1);
    c.positions = "rope";
    c.rope.fraction = static_cast<double>(width) / 98.0;
    EXPECT_EQ(c.rotated_width(), width);
    EXPECT_FALSE(c.find_problem().has_value());
  }
}

TEST(GptConfig, an_odd_rotated_width_matters_only_with_rope) {
  GptConfig c = sized(36, 4);
  EXPECT_FALSE(c.find_problem().has_value());
  c.positions = "rope";
  ASSERT_TRUE(c.find_problem().has_value());
  EXPECT_EQ(c.find_problem()->fields.front(), "rope.fraction");
  c.rope.fraction = 8.0 / 9.0;
  EXPECT_FALSE(c.find_problem().has_value());
}

TEST(GptConfig, resolve_throws_what_find_problem_finds) {
  GptConfig c = sized(10, 3);
  try {
    c.resolve();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), testing::HasSubstr("n_head = 3 does not divide d_model = 10"));
  }
}

TEST(GptConfig, resolve_needs_a_vocabulary) {
  GptConfig c = sized(8, 2);
  c.vocab_size = 0;
  EXPECT_THROW(c.resolve(), Error);
}

}  // namespace
}  // namespace rowan

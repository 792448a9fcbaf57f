// Texts made to hurt: deep nesting, endless keys, size. Each must end in an error, soon and without a deep stack.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "train/config.h"
#include "train/config_document.h"

namespace rowan {
namespace {

using testing::HasSubstr;

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse_config(text, "a.toml", overrides);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    return e.what();
  }
  return "accepted";
}

TEST(HostileConfig, deep_nesting_is_an_error) {
  constexpr int kDeep = 100000;
  const auto error_of = [](const char* pattern, const std::string& deep) {
    return refusal(fmt::format(fmt::runtime(pattern), deep));
  };
  EXPECT_THAT(error_of("a = {}", repeat("[", kDeep) + repeat("]", kDeep)), HasSubstr("a.toml:1:"));
  EXPECT_THAT(error_of("a = {}", repeat("[", kDeep)), HasSubstr("a.toml:1:"));
  EXPECT_THAT(error_of("a = {}", repeat("{a=", kDeep)), HasSubstr("a.toml:1:"));
  EXPECT_THAT(error_of("[a{}]\n", repeat(".a", kDeep)), HasSubstr("a key has more than 8 parts"));
  EXPECT_THAT(error_of("a{} = 1\n", repeat(" . \"b.c\" .\t'd'", kDeep / 10)), HasSubstr("a key has more than 8 parts"));
  const std::string value = fmt::format("data.train={}{}", repeat("[", kDeep), repeat("]", kDeep));
  EXPECT_THAT(refusal("", {value}), HasSubstr("--set data.train="));
  // The deepest that both limits let through together.
  EXPECT_THAT(error_of("a = {}", repeat("{a.a.a.a.a.a.a.a=", 250) + "1" + repeat("}", 250)), HasSubstr("a.toml:1:"));
}

TEST(HostileConfig, dots_in_strings_comments_and_numbers_are_no_key) {
  const std::string dots = repeat(".", 1000);
  const std::string text = fmt::format(
      "# {0}\n[data]\ntokenizer = \"{0}\"\n[train]\nsample_prompt = \"\"\"\n\\\"{0}\n{0}\"\"\"\nclip_norm = 1.5 # it's\nsteps = "
      "1\n",
      dots);
  const Config config = parse_config(text, "a.toml");
  EXPECT_EQ(config.data.tokenizer, dots);
  EXPECT_EQ(config.train.steps, 1);
  EXPECT_EQ(config.train.clip_norm, 1.5);
}

TEST(HostileConfig, size_is_limited) {
  EXPECT_EQ(refusal(repeat("# comment\n", 100000)), "accepted");
  EXPECT_THAT(refusal(repeat("# comment\n", 110000)), HasSubstr("at most 1048576 bytes, got 1100000"));
}

TEST(HostileConfig, many_groups_and_keys_are_read_in_time) {
  const Config groups = parse_config(repeat("[[optim.group]]\nparams='x'\n", 2000), "a.toml");
  EXPECT_EQ(groups.groups.size(), 2000u);
  EXPECT_TRUE(check_resume_changes(groups, groups).empty());
  std::vector<std::string> sets;
  for (int i = 0; i < 2000; ++i) sets.push_back(fmt::format("optim.group.{}.params=x", i));
  EXPECT_EQ(parse_config("", "a.toml", sets).groups.size(), 2000u);
  std::string keys = "[model]\n";
  for (int i = 0; i < 20000; ++i) keys += fmt::format("k{} = 1\n", i);
  EXPECT_THAT(refusal(keys), HasSubstr("a.toml:2:1:"));
}

// Every way of damaging one byte, and every truncation, of a text that uses all of the syntax: an Error or a config, nothing else.
TEST(HostileConfig, damaged_texts_are_read_or_refused) {
  const std::string text =
      "\xEF\xBB\xBF# "
      "c\r\nname='n'\n[model]\nn_embd=0x40\nrope={theta=1e4,style=\"half\"}\n[data]\ntrain=[\"\\u00e9\",'b']\n[[optim.group]]"
      "\nparams=\"\"\"*\"\"\"\n";
  ASSERT_EQ(refusal(text), "accepted");
  int refused = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    refused += refusal(text.substr(0, i)) != "accepted";
    for (int byte = 0; byte < 256; byte += 3) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(byte);
      refused += refusal(damaged) != "accepted";
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(TomlQuote, reads_back_to_the_same_text) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
  all += "\u00e9\u20ac\U0001F600\u0080\u009b\u009f\u00a0";
  EXPECT_EQ(parse_toml_value(toml_quote(all), "x").text, all);
  EXPECT_EQ(escape_controls("a\x1b\u009b\u00a0\n"), "a\\u001B\\u009B\u00a0\\n");
  EXPECT_EQ(escape_controls("\x9b"
                            "31m \xc3\xa9 \xe2\x82"),
            "\\x9B31m \xc3\xa9 \\xE2\\x82");  // bytes that are not UTF-8
  for (const char c : toml_quote(all)) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20);
}

}  // namespace
}  // namespace rowan

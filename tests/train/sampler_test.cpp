#include "train/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/error.h"
#include "train/stop_matcher.h"

namespace rowan {
namespace {

using ::testing::HasSubstr;

constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

std::vector<Real> logits_of(const std::vector<double>& probabilities) {
  std::vector<Real> out;
  for (double p : probabilities) out.push_back(static_cast<Real>(std::log(p)));
  return out;
}

std::map<int32_t, double> distribution(const SamplerConfig& config, const std::vector<Real>& logits,
                                       const std::vector<int32_t>& context = {}) {
  std::map<int32_t, double> out;
  double sum = 0;
  for (const Candidate& c : Sampler(config).candidates(logits, context)) {
    EXPECT_TRUE(out.emplace(c.id, c.probability).second) << "twice";
    sum += c.probability;
  }
  EXPECT_NEAR(sum, 1, 1e-12);
  return out;
}

void expect_distribution(const std::map<int32_t, double>& got, const std::map<int32_t, double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (const auto& [id, p] : expected) {
    ASSERT_TRUE(got.count(id)) << id;
    EXPECT_NEAR(got.at(id), p, 1e-6) << id;
  }
}

const std::vector<double> kFive = {0.1, 0.4, 0.05, 0.25, 0.2};

TEST(Sampler, without_limits_is_the_softmax) {
  expect_distribution(distribution({}, logits_of(kFive)), {{0, 0.1}, {1, 0.4}, {2, 0.05}, {3, 0.25}, {4, 0.2}});
}

TEST(Sampler, temperature_is_a_power_of_the_probabilities) {
  // softmax(log p / 0.5) = p^2 / sum p^2; sum = 0.01 + 0.16 + 0.0025 + 0.0625 + 0.04 = 0.275
  expect_distribution(distribution({.temperature = 0.5}, logits_of(kFive)),
                      {{0, 0.01 / 0.275}, {1, 0.16 / 0.275}, {2, 0.0025 / 0.275}, {3, 0.0625 / 0.275}, {4, 0.04 / 0.275}});
}

TEST(Sampler, top_k_keeps_the_k_most_likely) {
  expect_distribution(distribution({.top_k = 2}, logits_of(kFive)), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_distribution(distribution({.top_k = 1}, logits_of(kFive)), {{1, 1.0}});
  EXPECT_EQ(distribution({.top_k = 5}, logits_of(kFive)).size(), 5u);
  EXPECT_EQ(distribution({.top_k = 500}, logits_of(kFive)).size(), 5u);
  expect_distribution(distribution({.top_k = 2}, {0, 0, 0, 0}), {{0, 0.5}, {1, 0.5}});
}

TEST(Sampler, top_p_keeps_the_smallest_set_that_reaches_p) {
  const auto logits = logits_of(kFive);  // falling: 1 (.4), 3 (.65), 4 (.85), 0 (.95), 2 (1)
  expect_distribution(distribution({.top_p = 0.01}, logits), {{1, 1.0}});
  expect_distribution(distribution({.top_p = 0.39}, logits), {{1, 1.0}});
  expect_distribution(distribution({.top_p = 0.41}, logits), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_distribution(distribution({.top_p = 0.84}, logits), {{1, 0.4 / 0.85}, {3, 0.25 / 0.85}, {4, 0.2 / 0.85}});
  EXPECT_EQ(distribution({.top_p = 0.96}, logits).size(), 5u);
  expect_distribution(distribution({.top_p = 0.5}, {0, 0, 0, 0}), {{0, 0.5}, {1, 0.5}});
}

TEST(Sampler, top_p_counts_what_top_k_left) {
  // Of {.4, .25, .2} / .85 the first two have 0.7647.
  expect_distribution(distribution({.top_k = 3, .top_p = 0.76}, logits_of(kFive)), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  EXPECT_EQ(distribution({.top_k = 3, .top_p = 0.77}, logits_of(kFive)).size(), 3u);
}

TEST(Sampler, min_p_is_a_share_of_the_largest) {
  expect_distribution(distribution({.min_p = 0.49}, logits_of(kFive)), {{1, 0.4 / 0.85}, {3, 0.25 / 0.85}, {4, 0.2 / 0.85}});
  expect_distribution(distribution({.min_p = 0.51}, logits_of(kFive)), {{1, 0.4 / 0.65}, {3, 0.25 / 0.65}});
  expect_distribution(distribution({.min_p = 1}, logits_of(kFive)), {{1, 1.0}});
}

TEST(Sampler, repetition_penalty_divides_positive_and_multiplies_negative_logits_once) {
  const std::vector<Real> logits = {2, -1, 0.5, 0};
  const double a = std::exp(2 / 1.25), b = std::exp(-1 * 1.25), c = std::exp(0.5), d = 1, sum = a + b + c + d;
  expect_distribution(distribution({.repetition_penalty = 1.25}, logits, {0, 1, 0, 0, 3}),
                      {{0, a / sum}, {1, b / sum}, {2, c / sum}, {3, d / sum}});
  EXPECT_EQ(Sampler({.temperature = 0, .repetition_penalty = 5}).next(logits, std::vector<int32_t>{0}, 0), 2);
}

TEST(Sampler, greedy_takes_the_lowest_of_equal_ids) {
  const Sampler greedy({.temperature = 0});
  EXPECT_EQ(greedy.next(std::vector<Real>{1, 3, 3, 2}, {}, 0), 1);
  EXPECT_EQ(greedy.next(std::vector<Real>{-kInfinity, -5}, {}, 17), 1);
}

TEST(Sampler, draws_follow_the_probabilities) {
  const Sampler sampler({.top_k = 4});  // without id 2: {.1, .4, .25, .2} / .95
  std::vector<int> counts(5, 0);
  constexpr int kDraws = 20000;
  const auto logits = logits_of(kFive);
  for (int i = 0; i < kDraws; ++i) ++counts.at(static_cast<size_t>(sampler.next(logits, {}, i)));
  EXPECT_EQ(counts[2], 0);
  double chi2 = 0;
  for (size_t id : {0, 1, 3, 4}) {
    const double expected = kDraws * kFive[id] / 0.95;
    chi2 += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  EXPECT_LT(chi2, 16.3);  // 3 degrees of freedom, p = 0.001
}

TEST(Sampler, a_draw_depends_on_seed_stream_and_position_alone) {
  const std::vector<Real> flat(1000, 0);
  const auto draws = [&](int64_t seed, uint32_t stream, int64_t from) {
    const Sampler s({.seed = seed}, stream);
    std::vector<int32_t> out;
    for (int64_t i = from; i < from + 20; ++i) out.push_back(s.next(flat, {}, i));
    return out;
  };
  EXPECT_EQ(draws(1, 0, 0), draws(1, 0, 0));
  EXPECT_NE(draws(1, 0, 0), draws(2, 0, 0));
  EXPECT_NE(draws(1, 0, 0), draws(1, 1, 0));
  EXPECT_EQ(draws(1, 0, 0)[5], draws(1, 0, 5)[0]);
}

TEST(Sampler, never_picks_a_token_of_no_probability) {
  const std::vector<Real> logits = {-kInfinity, 0, -kInfinity, 0, -1e30f};
  for (double top_p : {1.0, 0.999}) {
    const Sampler sampler({.top_p = top_p});
    for (int i = 0; i < 500; ++i) {
      const int32_t id = sampler.next(logits, {}, i);
      EXPECT_TRUE(id == 1 || id == 3);
    }
  }
}

TEST(Sampler, large_logits_and_small_temperatures_stay_finite) {
  expect_distribution(distribution({.temperature = 1e-300}, {1e30f, 1, -1e30f}), {{0, 1.0}});
  expect_distribution(distribution({.temperature = 1e300}, {1, 2}), {{0, 0.5}, {1, 0.5}});
}

TEST(Sampler, names_a_logit_that_is_not_a_number) {
  const Sampler sampler({});
  const auto message = [&](const std::vector<Real>& logits) {
    try {
      sampler.next(logits, {}, 0);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({0, 1, std::numeric_limits<Real>::quiet_NaN()}), HasSubstr("id 2 is nan"));
  EXPECT_THAT(message({0, kInfinity}), HasSubstr("id 1 is inf"));
  EXPECT_THAT(message({-kInfinity, -kInfinity}), HasSubstr("none of 2"));
  EXPECT_THAT(message({}), HasSubstr("none of 0"));
  EXPECT_THROW(Sampler({.repetition_penalty = 2}).next(std::vector<Real>{0, 1}, std::vector<int32_t>{2}, 0), Error);
}

TEST(Sampler, refuses_settings_out_of_range_by_name) {
  const double nan = std::nan("");
  const std::vector<std::pair<SamplerConfig, std::string>> table = {{{.temperature = -0.1}, "temperature"},
                                                                    {{.temperature = nan}, "temperature"},
                                                                    {{.temperature = HUGE_VAL}, "temperature"},
                                                                    {{.top_k = -1}, "top_k"},
                                                                    {{.top_p = 0}, "top_p"},
                                                                    {{.top_p = 1.1}, "top_p"},
                                                                    {{.top_p = nan}, "top_p"},
                                                                    {{.min_p = -0.1}, "min_p"},
                                                                    {{.min_p = 1.1}, "min_p"},
                                                                    {{.min_p = nan}, "min_p"},
                                                                    {{.repetition_penalty = 0}, "repetition_penalty"},
                                                                    {{.repetition_penalty = nan}, "repetition_penalty"}};
  for (const auto& [config, name] : table) {
    try {
      Sampler sampler(config);
      ADD_FAILURE() << name;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUsage);
      EXPECT_THAT(e.what(), HasSubstr("expected " + name));
    }
  }
}

// Everything that is shown when `text` comes in pieces of `piece` bytes.
std::string shown(const std::vector<std::string>& stops, const std::string& text, size_t piece, bool* stopped = nullptr) {
  StopMatcher matcher(stops);
  std::string out;
  for (size_t at = 0; at < text.size(); at += piece) out += matcher.push(text.substr(at, piece));
  out += matcher.finish();
  if (stopped) *stopped = matcher.stopped();
  return out;
}

TEST(StopMatcher, shows_what_comes_before_the_stop_string_for_any_pieces) {
  struct Case {
    std::vector<std::string> stops;
    std::string text, expected;
    bool stopped;
  };
  const std::vector<Case> table = {
      {{"END"}, "one END two", "one ", true}, {{"END"}, "one EN", "one EN", false}, {{"END"}, "EEND", "E", true},
      {{"aab"}, "aaab", "a", true},           {{"abab"}, "ababab", "", true},       {{"abac"}, "ababac", "ab", true},
      {{"\n\n"}, "a\n\nb", "a", true},        {{"b", "abc"}, "xabc", "xa", true},  // b is complete first
      {{"bc", "abc"}, "xabc", "x", true},                                          // both at the same byte: the longest
      {{"xyz", "€"}, "5 € xyz", "5 ", true},  {{}, "anything", "anything", false},  {{"q"}, "", "", false},
  };
  for (const Case& c : table) {
    for (size_t piece : {1, 2, 3, 100}) {
      bool stopped = false;
      EXPECT_EQ(shown(c.stops, c.text, piece, &stopped), c.expected) << c.text << " in pieces of " << piece;
      EXPECT_EQ(stopped, c.stopped) << c.text;
    }
  }
}

TEST(StopMatcher, holds_back_only_what_may_become_a_stop_string) {
  StopMatcher matcher({"User:"});
  EXPECT_EQ(matcher.push("hello Us"), "hello ");
  EXPECT_EQ(matcher.push("ually"), "Usually");
  EXPECT_EQ(matcher.push("\nUser"), "\n");
  EXPECT_EQ(matcher.push(": no"), "");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, refuses_an_empty_stop_string) {
  EXPECT_THROW(StopMatcher({"a", ""}), Error);
}

}  // namespace
}  // namespace rowan

#include "core/ops/attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/attention_reference.h"
#include "tests/support/gradcheck.h"

namespace rowan {
namespace {

using test::expect_close;
using test::random_tensor;

constexpr double kTolerance = kRealIsDouble ? 1e-12 : 2e-6;

struct Case {
  int64_t batch, length;
  AttentionShape shape;
  std::optional<Rope> rope = {};
  double dropout = 0;

  Tensor input(double deviation = 1) const { return random_tensor({batch, length, shape.qkv_width()}, 11, deviation); }
  const Rope* rope_or_null() const { return rope ? &*rope : nullptr; }
  std::string name() const {
    return join_text("B ", batch, " T ", length, " H ", shape.heads, " K ", shape.kv_heads, " hd ", shape.head_dim, " scale ",
                     shape.scale, " rotated ", rope ? rope->rotated : 0, rope && rope->interleaved ? " interleaved" : "",
                     " dropout ", dropout);
  }
};

const RandomKey kMask{.seed = 5, .purpose = Purpose::kDropout, .site = 3, .step = 8};

// Lengths around the tiles' 64 and 128, head widths around the lanes' 16, all kinds of grouping and rotation.
std::vector<Case> cases() {
  const Rope half{.theta = 10000, .interleaved = false, .rotated = 8}, interleaved{.theta = 500, .interleaved = true, .rotated = 8};
  return {{1, 1, {1, 1, 1}},
          {2, 1, {3, 1, 5}},
          {2, 3, {2, 2, 2}},
          {1, 7, {4, 2, 8}, half},
          {3, 17, {2, 1, 8}, interleaved},
          {2, 63, {4, 4, 32}},
          {12, 64, {4, 4, 32}},
          {1, 65, {3, 3, 5}},
          {1, 100, {6, 2, 16}, Rope{.theta = 10000, .interleaved = true, .rotated = 16}},
          {2, 129, {4, 1, 8, 0.7}, Rope{.theta = 100, .interleaved = false, .rotated = 4}},
          {1, 200, {2, 2, 80}, half},
          {1, 300, {2, 1, 64}, Rope{.theta = 10000, .interleaved = false, .rotated = 64}},
          {1, 257, {8, 4, 33}, interleaved},
          {17, 67, {4, 2, 9}, half}};
}

TEST(Attention, agrees_with_a_plain_softmax_over_all_keys) {
  for (const Case& c : cases()) {
    const Tensor qkv = c.input();
    expect_close(attention(Variable(qkv), c.shape, c.rope_or_null()).value(),
                 test::plain_attention(qkv, c.shape, c.rope_or_null()).out, kTolerance, c.name());
  }
}

TEST(Attention, backward_agrees_with_plain_loops) {
  for (const Case& c : cases()) {
    const Variable qkv = Variable::leaf(c.input());
    const Tensor dy = random_tensor({c.batch, c.length, c.shape.out_width()}, 12);
    Variable x = qkv;
    backward(dot(attention(x, c.shape, c.rope_or_null()), dy));
    expect_close(x.grad(), test::plain_attention(qkv.value(), c.shape, c.rope_or_null()).backward(dy), 4 * kTolerance, c.name());
  }
}

TEST(Attention, backward_agrees_with_central_differences) {
  const Rope half{.theta = 10, .interleaved = false, .rotated = 2}, interleaved{.theta = 10, .interleaved = true, .rotated = 4};
  const std::vector<Case> small = {
      {1, 1, {1, 1, 1}},          {2, 3, {2, 1, 2}, half}, {1, 9, {2, 2, 5}, interleaved}, {1, 5, {4, 2, 4, 1.3}, interleaved},
      {2, 6, {2, 1, 3}, {}, 0.3}, {1, 66, {1, 1, 1}},      {1, 67, {1, 1, 2}, half, 0.2}};
  for (const Case& c : small)
    EXPECT_TRUE(test::gradcheck(
        [&](const std::vector<Variable>& x) { return attention(x[0], c.shape, c.rope_or_null(), c.dropout, kMask); }, {c.input()}))
        << c.name();
}

TEST(Attention, has_the_same_bits_for_any_thread_count) {
  // Many short sequences, few long ones, and one of each kind of piece in the backward.
  const Rope rope{.theta = 10000, .interleaved = false, .rotated = 8};
  for (const Case& c : {Case{12, 64, {4, 4, 32}, {}, 0.1}, Case{1, 700, {4, 1, 16}, rope}, Case{9, 130, {4, 2, 8}, rope, 0.5},
                        Case{17, 70, {6, 3, 5}, {}, 0.1}})
    EXPECT_TRUE(test::same_bits_for_any_thread_count([&] {
      Variable x = Variable::leaf(c.input());
      const Variable y = attention(x, c.shape, c.rope_or_null(), c.dropout, kMask);
      backward(dot(y, random_tensor(y.shape(), 12)));
      return std::vector<Tensor>{y.value(), x.grad()};
    })) << c.name();
}

TEST(Attention, the_order_of_work_in_the_backward_does_not_depend_on_the_batch) {
  // 16 sequences run head group by head group, one runs tile by tile: each sequence must come out the same.
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 8};
  const int64_t batch = 16, length = 200;
  const Tensor qkv = random_tensor({batch, length, shape.qkv_width()}, 1),
               dy = random_tensor({batch, length, shape.out_width()}, 2);
  Variable all = Variable::leaf(qkv);
  backward(dot(attention(all, shape), dy));
  const auto one = [&](const Tensor& t, int64_t b) {
    const size_t size = static_cast<size_t>(t.size() / batch);
    return Tensor::from({1, length, t.shape().back()}, t.values().subspan(static_cast<size_t>(b) * size, size));
  };
  for (int64_t b : {0, 7, 15}) {
    Variable alone = Variable::leaf(one(qkv, b));
    backward(dot(attention(alone, shape), one(dy, b)));
    EXPECT_TRUE(test::same_bits(alone.grad(), one(all.grad(), b))) << b;
  }
}

TEST(Attention, a_position_sees_nothing_that_comes_after_it) {
  const AttentionShape shape{.heads = 2, .kv_heads = 2, .head_dim = 8};
  const Tensor qkv = random_tensor({1, 150, shape.qkv_width()}, 3);
  const Tensor before = attention(Variable(qkv), shape).value().clone();
  Tensor changed = qkv.clone();
  for (int64_t t = 100; t < 150; ++t)
    for (Real& x : changed.row(t)) x = 1000;
  const Tensor after = attention(Variable(changed), shape).value();
  for (int64_t t = 0; t < 150; ++t) {
    bool same = true;
    for (size_t d = 0; d < static_cast<size_t>(shape.out_width()); ++d) same &= before.row(t)[d] == after.row(t)[d];
    EXPECT_EQ(same, t < 100) << t;
  }
}

TEST(Attention, dropout_drops_the_stated_share_and_keeps_the_mean) {
  // With all values 1 and equal scores, an output is 1/(1-p) times the share of kept weights.
  const AttentionShape shape{.heads = 4, .kv_heads = 4, .head_dim = 1};
  const int64_t length = 400;
  const double p = 0.3;
  const Tensor ones = Tensor::full({2, length, shape.qkv_width()}, 1);
  const Tensor y = attention(Variable(ones), shape, nullptr, p, kMask).value();
  double kept = 0, weights = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    const double seen = static_cast<double>(i / shape.heads % length + 1);
    const double here = static_cast<double>(y.data()[i]) * (1 - p) * seen;
    EXPECT_NEAR(here, std::round(here), 1e-3) << "a weight is kept or dropped, never something between";
    kept += here;
    weights += seen;
  }
  // 641600 weights: five standard deviations of the share are 0.0029.
  EXPECT_NEAR(kept / weights, 1 - p, 0.0029);
}

TEST(Attention, the_dropout_mask_repeats_for_a_key_and_changes_with_it) {
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 4};
  const Variable x(random_tensor({2, 90, shape.qkv_width()}, 4));
  RandomKey next = kMask;
  ++next.step;
  const Tensor a = attention(x, shape, nullptr, 0.5, kMask).value(), b = attention(x, shape, nullptr, 0.5, kMask).value();
  const Tensor c = attention(x, shape, nullptr, 0.5, next).value();
  EXPECT_TRUE(test::same_bits(a, b));
  EXPECT_FALSE(test::same_bits(a, c));
}

TEST(Attention, the_dropout_mask_differs_between_sequences_and_heads) {
  const AttentionShape shape{.heads = 2, .kv_heads = 2, .head_dim = 1};
  const Tensor ones = Tensor::full({2, 64, shape.qkv_width()}, 1);
  const Tensor y = attention(Variable(ones), shape, nullptr, 0.5, kMask).value();  // (2,64,2)
  const auto column = [&](int64_t b, int64_t h) {
    std::vector<Real> v;
    for (int64_t t = 0; t < 64; ++t) v.push_back(y.row(b * 64 + t)[static_cast<size_t>(h)]);
    return v;
  };
  EXPECT_NE(column(0, 0), column(0, 1));
  EXPECT_NE(column(0, 0), column(1, 0));
  EXPECT_NE(column(0, 1), column(1, 0));
}

TEST(Attention, huge_scores_give_finite_results) {
  for (double deviation : {1e2, 3e2}) {
    const Case c{1, 140, {2, 1, 4, 1}};
    Variable x = Variable::leaf(c.input(deviation));  // scores up to about 1e4 and 1e5, of both signs
    const Variable y = attention(x, c.shape);
    backward(dot(y, random_tensor(y.shape(), 12)));
    for (Real v : y.value().values()) ASSERT_TRUE(std::isfinite(v));
    for (Real v : x.grad().values()) ASSERT_TRUE(std::isfinite(v));
    expect_close(y.value(), test::plain_attention(x.value(), c.shape, nullptr).out, kRealIsDouble ? 1e-9 : 0.05);
  }
}

TEST(Attention, numbers_that_are_not_finite_reach_the_rows_that_see_them) {
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 4};
  const Real bad[] = {std::numeric_limits<Real>::quiet_NaN(), std::numeric_limits<Real>::infinity()};
  for (Real value : bad)
    for (int64_t part : {0, 1, 2}) {  // q, k, v
      Tensor qkv = random_tensor({1, 100, shape.qkv_width()}, 6);
      qkv.row(70)[static_cast<size_t>(part * 4)] = value;
      const Tensor y = attention(Variable(qkv), shape).value();
      bool finite = true;
      for (Real v : y.row(70)) finite &= std::isfinite(v);
      EXPECT_FALSE(finite) << value << " in part " << part;
      for (Real v : y.row(10)) EXPECT_TRUE(std::isfinite(v)) << value << " in part " << part;
    }
}

// Heads that are worked on one after the other share memory: nothing of one may be left in another.
TEST(Attention, a_head_that_is_not_finite_leaves_all_others_as_they_are) {
  const AttentionShape shape{.heads = 2, .kv_heads = 2, .head_dim = 5};
  const Tensor dy = random_tensor({40, 70, shape.out_width()}, 8);
  const auto results = [&](const Tensor& qkv) {
    Variable x = Variable::leaf(qkv.clone());
    const Variable y = attention(x, shape);
    backward(dot(y, dy));
    return std::pair{y.value(), x.grad()};
  };
  const Tensor qkv = random_tensor({40, 70, shape.qkv_width()}, 6);
  Tensor bad = qkv.clone();
  for (int64_t t = 0; t < 70; ++t)
    for (int64_t j = 0; j < shape.qkv_width(); ++j)
      bad.row(13 * 70 + t)[static_cast<size_t>(j)] = std::numeric_limits<Real>::quiet_NaN();
  const auto [y, dx] = results(qkv);
  const auto [bad_y, bad_dx] = results(bad);
  const auto same = [](const Tensor& a, const Tensor& b, int64_t begin, int64_t end) {
    const auto width = static_cast<int64_t>(a.shape().back());
    return std::equal(a.data() + begin * 70 * width, a.data() + end * 70 * width, b.data() + begin * 70 * width);
  };
  for (const auto& [begin, end] : {std::pair{0, 13}, std::pair{14, 40}}) {
    EXPECT_TRUE(same(y, bad_y, begin, end));
    EXPECT_TRUE(same(dx, bad_dx, begin, end));
  }
  EXPECT_TRUE(std::isnan(bad_dx.row(13 * 70)[0]));
}

TEST(Attention, memory_stays_far_under_one_score_per_pair) {
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 16};
  const int64_t length = 2048;
  const Threads threads(2);
  Variable x = Variable::leaf(random_tensor({1, length, shape.qkv_width()}, 7));
  const Tensor dy = random_tensor({1, length, shape.out_width()}, 8);
  const int64_t before = pool_stats().bytes_in_use;
  reset_pool_peak();
  backward(dot(attention(x, shape), dy));
  const int64_t used = pool_stats().peak_bytes_in_use - before;
  EXPECT_LT(used, length * length * static_cast<int64_t>(sizeof(Real)) / 4);
}

TEST(Attention, a_warm_pass_takes_nothing_from_the_system) {
  const Case c{2, 200, {4, 2, 16}, Rope{.rotated = 16}, 0.1};
  const Tensor qkv = c.input(), dy = random_tensor({c.batch, c.length, c.shape.out_width()}, 8);
  const auto pass = [&] {
    Variable x = Variable::leaf(qkv);
    backward(dot(attention(x, c.shape, c.rope_or_null(), c.dropout, kMask), dy));
  };
  pass();
  const int64_t before = pool_stats().system_allocations;
  pass();
  EXPECT_EQ(pool_stats().system_allocations, before);
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Attention, wrong_arguments_are_errors_that_name_the_sizes) {
  const Variable qkv(random_tensor({2, 3, 24}, 1));
  const auto message = [&](const AttentionShape& shape, const Rope* rope = nullptr, double dropout = 0) {
    return message_of([&] { attention(qkv, shape, rope, dropout); });
  };
  EXPECT_EQ(message({2, 1, 8}),
            "[attention] qkv is (2, 3, 24) but (B, T, 32) is expected for 2 query and 1 key/value heads of width 8");
  EXPECT_EQ(message({3, 2, 8}), "[attention] 2 key/value heads must divide 3 heads, all positive, of width 8");
  EXPECT_EQ(message({0, 1, 12}), "[attention] 1 key/value heads must divide 0 heads, all positive, of width 12");
  EXPECT_EQ(message({1, 1, 8}, nullptr, 1), "[attention] dropout 1 is outside [0, 1)");
  EXPECT_EQ(message({1, 1, 8, std::numeric_limits<double>::infinity()}), "[attention] scale inf is not a finite number");
  const Rope wide{.rotated = 10};
  EXPECT_NE(message({1, 1, 8}, &wide).find("[rope]"), std::string::npos);
  EXPECT_EQ(message_of([] { attention(Variable(Tensor({2, 0, 24})), {1, 1, 8}); }), "[attention] qkv has no positions: (2, 0, 24)");
}

// --- decoding with a cache

Tensor positions_of(const Tensor& t, int64_t begin, int64_t end) {  // (B,T,W) -> (B,end-begin,W)
  const int64_t length = t.shape()[1], width = t.shape().back();
  Tensor out({t.shape()[0], end - begin, width});
  for (int64_t b = 0; b < t.shape()[0]; ++b)
    std::copy_n(t.data() + (b * length + begin) * width, (end - begin) * width, out.data() + b * (end - begin) * width);
  return out;
}

TEST(AttentionDecode, positions_one_by_one_and_in_runs_agree_with_all_at_once) {
  for (const Case& c : cases()) {
    const Tensor qkv = c.input(), full = attention(Variable(qkv), c.shape, c.rope_or_null()).value();
    KvCache cache(c.batch, c.shape, c.length);
    for (int64_t at = 0, step = 1; at < c.length; at += step) {
      step = std::min(at < 40 ? 50 : 1 + at % 3, c.length - at);
      const Tensor y = attention_decode(positions_of(qkv, at, at + step), cache, c.shape, c.rope_or_null());
      ASSERT_TRUE(test::same_bits(y, positions_of(full, at, at + step))) << c.name() << " at " << at;
    }
    EXPECT_EQ(cache.length(), c.length);
  }
}

TEST(AttentionDecode, a_truncated_cache_goes_on_from_there) {
  const AttentionShape shape{.heads = 2, .kv_heads = 1, .head_dim = 8};
  const Rope rope{.rotated = 8};
  const Tensor qkv = random_tensor({1, 90, shape.qkv_width()}, 5);
  const Tensor full = attention(Variable(qkv), shape, &rope).value();
  KvCache cache(1, shape, 128);
  attention_decode(qkv, cache, shape, &rope);
  cache.truncate(70);
  const Tensor y = attention_decode(positions_of(qkv, 70, 90), cache, shape, &rope);
  EXPECT_TRUE(test::same_bits(y, positions_of(full, 70, 90)));
  EXPECT_THROW(cache.truncate(91), Error);
  EXPECT_THROW(cache.truncate(-1), Error);
}

TEST(AttentionDecode, a_full_cache_is_an_error_that_names_both_numbers_and_changes_nothing) {
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 4};
  KvCache cache(1, shape, 10);
  attention_decode(random_tensor({1, 8, 12}, 1), cache, shape);
  EXPECT_EQ(message_of([&] {
              attention_decode(random_tensor({1, 3, 12}, 1), cache, shape);
            }),
            "[kv cache] full: 8 positions and 3 new ones do not fit into its capacity of 10");
  EXPECT_EQ(cache.length(), 8);
  attention_decode(random_tensor({1, 2, 12}, 1), cache, shape);
  EXPECT_EQ(cache.length(), 10);
}

TEST(AttentionDecode, a_cache_of_another_shape_is_an_error) {
  const AttentionShape shape{.heads = 1, .kv_heads = 1, .head_dim = 4};
  KvCache cache(2, shape, 10);
  EXPECT_EQ(message_of([&] {
              attention_decode(random_tensor({1, 3, 12}, 1), cache, shape);
            }),
            "[kv cache] qkv is (1, 3, 12) but (2, t, 12) is expected");
}

}  // namespace
}  // namespace rowan
